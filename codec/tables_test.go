package codec

import (
	"math"
	"testing"
	"time"
)

func TestCodes(t *testing.T) {
	statuses := map[string]int{
		"bad_request": 400, "unsupported": 400, "unauthenticated": 401, "forbidden": 403, "not_found": 404,
		"conflict": 409, "not_joined": 409, "expired": 410, "too_large": 413, "rate_limited": 429, "quota_exceeded": 429,
		"backpressured": 503, "unavailable": 503, "draining": 503, "deadline_exceeded": 504, "internal": 500, "unknown_type": 400,
	}
	retryable := map[string]bool{"backpressured": true, "unavailable": true, "rate_limited": true, "quota_exceeded": true, "draining": true}
	n := 0
	for c := CodeBadRequest; int(c) < len(codes); c++ {
		n++
		if status, known := statuses[c.String()]; !known || c.HTTPStatus() != status {
			t.Errorf("%q has status %d", c, c.HTTPStatus())
		}
		if c.Retryable() != retryable[c.String()] {
			t.Errorf("%q is retryable: %v", c, c.Retryable())
		}
		if codeOf(c.String()) != c {
			t.Errorf("%q does not come back", c)
		}
	}
	if n != len(statuses) || codeOf("") != 0 || codeOf("other") != 0 {
		t.Errorf("%d codes", n)
	}
}

// retry_after_ms is there if and only if the code is retryable, and at least 1.
func TestRetryAfter(t *testing.T) {
	for _, c := range []struct {
		err  *Error
		want int64
	}{
		{Retry(CodeUnavailable, ScopeNode, 0, ""), 1},
		{Retry(CodeUnavailable, ScopeNode, -time.Second, ""), 1},
		{Retry(CodeUnavailable, ScopeNode, time.Nanosecond, ""), 1},
		{Retry(CodeUnavailable, ScopeNode, 1500*time.Microsecond, ""), 2},
		{Retry(CodeUnavailable, ScopeNode, math.MaxInt64, ""), math.MaxInt64/1_000_000 + 1},
		{Retry(CodeForbidden, ScopeNode, time.Second, ""), 0},
		{NewError(CodeRateLimited, ""), 1},
		{NewError(CodeInternal, ""), 0},
	} {
		if got := c.err.RetryAfterMS(); got != c.want {
			t.Errorf("%s after %v: %d, want %d", c.err.Code, c.err.RetryAfter, got, c.want)
		}
	}
}

func TestCauses(t *testing.T) {
	final := map[uint16]bool{1000: true, 1001: true, 1002: true, 1003: true, 1007: true, 1008: true, 1009: true, 4400: true, 4403: true}
	codes := map[uint16]bool{1000: true, 1001: true, 1002: true, 1003: true, 1007: true, 1008: true, 1009: true, 1011: true, 1012: true, 1013: true,
		4400: true, 4401: true, 4403: true, 4409: true, 4500: true, 4529: true, 1006: true}
	labels := map[string]bool{}
	for c := CauseNormal; c <= CauseAbrupt; c++ {
		code := c.CloseCode()
		if !codes[code] || CauseOf(code) != c {
			t.Errorf("%s has code %d, which is %s", c, code, CauseOf(code))
		}
		delete(codes, code)
		if c.Final() != final[code] {
			t.Errorf("%s is final: %v", c, c.Final())
		}
		if c.Immediate() != (code == 4400 || code == 4409) {
			t.Errorf("%s is immediate: %v", c, c.Immediate())
		}
		if labels[c.String()] || c.String() == "" {
			t.Errorf("label %q", c)
		}
		labels[c.String()] = true
	}
	if len(codes) > 0 {
		t.Errorf("close codes without a cause: %v", codes)
	}
	for code, want := range map[uint16]Cause{0: CauseAbrupt, 1005: CauseAbrupt, 1010: CauseProtocol, 1015: CauseAbrupt, 3000: CauseAbrupt, 4499: CausePolicy, 4599: CauseAbrupt, 65535: CauseAbrupt} {
		if got := CauseOf(code); got != want {
			t.Errorf("%d is %s, want %s", code, got, want)
		}
	}
}

func TestProtocols(t *testing.T) {
	for i, want := range []struct {
		name   string
		codec  Codec
		binary bool
	}{{"pulse.v1.json", JSON, false}, {"pulse.v1.msgpack", Msgpack, true}} {
		if p := Protocols()[i]; p.Name() != want.name || p.Codec() != want.codec || p.Binary() != want.binary {
			t.Errorf("%s %s %v", p.Name(), p.Codec(), p.Binary())
		}
	}
}

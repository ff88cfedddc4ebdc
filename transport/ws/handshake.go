package ws

import (
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/yaza-dev/pulse/codec"
)

// upgrade is what a handshake asks for, in order by RFC 6455, section 4.2.1.
type upgrade struct {
	key      string
	protocol codec.Protocol
	named    bool // the client named the protocol, so the answer must too
	packing  agreement
}

// refused is an HTTP answer instead of the upgrade.
type refused struct {
	status int
	header [2]string // one more header of the answer; empty: none
	text   string
}

// checkHandshake reads a request for an upgrade. It is stricter than gws, which
// takes any key, and chooses by the client's order, not by the server's.
func checkHandshake(r *http.Request, protocols []codec.Protocol) (upgrade, *refused) {
	bad := func(text string) (upgrade, *refused) {
		return upgrade{}, &refused{status: http.StatusBadRequest, text: text}
	}
	switch {
	case r.Method != http.MethodGet:
		return upgrade{}, &refused{http.StatusMethodNotAllowed, [2]string{"Allow", http.MethodGet}, "method is not GET"}
	case r.ProtoMajor != 1 || r.ProtoMinor < 1:
		return bad("a WebSocket needs HTTP/1.1")
	case !hasToken(r.Header, "Upgrade", "websocket"):
		return bad("not an upgrade to websocket")
	case !hasToken(r.Header, "Connection", "upgrade"):
		return bad("connection is not to be upgraded")
	case r.ContentLength != 0:
		return bad("a request for an upgrade has no body")
	}
	if v := r.Header["Sec-Websocket-Version"]; len(v) != 1 || v[0] != "13" {
		return upgrade{}, &refused{http.StatusUpgradeRequired, [2]string{"Sec-WebSocket-Version", "13"}, "WebSocket version is not 13"}
	}
	keys := r.Header["Sec-Websocket-Key"]
	if len(keys) != 1 {
		return bad("not one Sec-WebSocket-Key")
	}
	if key, err := base64.StdEncoding.DecodeString(keys[0]); err != nil || len(key) != 16 {
		return bad("Sec-WebSocket-Key is not 16 bytes")
	}
	u := upgrade{key: keys[0]}
	offers := tokens(r.Header, "Sec-Websocket-Protocol")
	if len(offers) == 0 {
		u.protocol = protocols[0]
		return u, nil
	}
	for _, offer := range offers {
		for _, p := range protocols {
			if p.Name() == offer {
				u.protocol, u.named = p, true
				return u, nil
			}
		}
	}
	return bad("no known subprotocol was offered")
}

// request is what gws is given: nothing that it could read in another way.
func (u upgrade) request() *http.Request {
	h := http.Header{
		"Connection":            {"Upgrade"},
		"Upgrade":               {"websocket"},
		"Sec-Websocket-Version": {"13"},
		"Sec-Websocket-Key":     {u.key},
	}
	if u.named {
		h["Sec-Websocket-Protocol"] = []string{u.protocol.Name()}
	}
	if u.packing.deflate {
		h["Sec-Websocket-Extensions"] = []string{u.packing.header()}
	}
	return &http.Request{Method: http.MethodGet, Header: h}
}

func hasToken(h http.Header, name, token string) bool {
	for _, t := range tokens(h, name) {
		if strings.EqualFold(t, token) {
			return true
		}
	}
	return false
}

// tokens are the elements of a list that may be spread over several headers. name
// is in canonical form.
func tokens(h http.Header, name string) []string {
	var all []string
	for _, line := range h[name] {
		for t := range strings.SplitSeq(line, ",") {
			if t = strings.TrimSpace(t); t != "" {
				all = append(all, t)
			}
		}
	}
	return all
}

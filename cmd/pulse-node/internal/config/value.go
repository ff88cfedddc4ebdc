package config

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Size is a number of bytes.
type Size int64

var units = []struct {
	suffix string
	bytes  int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"B", 1}}

// String writes s as the configuration does, in the largest unit that fits it.
func (s Size) String() string {
	best := units[len(units)-1]
	for _, u := range units {
		if s != 0 && int64(s)%u.bytes == 0 && u.bytes > best.bytes {
			best = u
		}
	}
	return strconv.FormatInt(int64(s)/best.bytes, 10) + best.suffix
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	sizeType     = reflect.TypeFor[Size]()
)

// parse reads text as a value of type t. Its errors say what would be right.
func parse(t reflect.Type, text string) (reflect.Value, error) {
	v, err := parseScalar(t, text)
	return reflect.ValueOf(v), err
}

func parseScalar(t reflect.Type, text string) (any, error) {
	switch {
	case t == durationType:
		return parseDuration(text)
	case t == sizeType:
		return parseSize(text)
	}
	switch t.Kind() {
	case reflect.String:
		return text, nil
	case reflect.Bool:
		if text != "true" && text != "false" {
			return nil, errors.New("must be true or false")
		}
		return text == "true", nil
	case reflect.Int:
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return nil, errors.New("must be a whole number, zero or above, in decimal digits")
		}
		return n, nil
	case reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || !(f >= 0) || math.IsInf(f, 0) {
			return nil, errors.New("must be a finite number, zero or above")
		}
		return f, nil
	case reflect.Slice:
		return parseList(text), nil
	}
	panic(fmt.Sprintf("config: no way to read a %v", t))
}

func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if last := len(text) - 1; err != nil || d < 0 || text[last] >= '0' && text[last] <= '9' {
		return 0, errors.New("must be a duration with its unit, such as 25s, 1m30s or 0s, not negative")
	}
	return d, nil
}

func parseSize(text string) (Size, error) {
	for _, u := range units {
		digits, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 63)
		if err != nil || int64(n) > math.MaxInt64/u.bytes {
			break
		}
		return Size(int64(n) * u.bytes), nil
	}
	return 0, errors.New("must be a size with its unit (B, KiB, MiB, GiB), such as 64KiB or 0B")
}

// parseList splits a list of the environment or of a flag at its commas.
func parseList(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

package codec

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// A number is the same in both codecs however many digits it is written with, and is
// refused when it is beyond float64 whatever its digits and its exponent are by
// themselves.
func TestLongNumbers(t *testing.T) {
	zeros := func(n int) string { return strings.Repeat("0", n) }
	for text, want := range map[string]float64{
		"1" + zeros(900) + "e-900":                             1,
		"-1" + zeros(900) + ".0E-900":                          -1,
		"1" + zeros(5000) + "e-4692":                           1e308,
		"1" + zeros(900) + "e-500":                             math.Inf(1), // 1e400
		"-1" + zeros(900) + "e-500":                            math.Inf(-1),
		"1" + zeros(900):                                       math.Inf(1), // in data an integer beyond 64 bits
		"1" + zeros(300) + "." + zeros(900) + "1":              1e300,
		"0." + zeros(2000) + "1e2001":                          1,
		"0." + zeros(200_000) + "1e200001":                     1,
		"1" + zeros(200_000) + "e-200000":                      1,
		"0." + zeros(2000) + "e999999999999999999999999":       0,
		"-0." + zeros(2000):                                    math.Copysign(0, -1),
		"1" + zeros(900) + "e-999999999999999999999999":        0,
		"1" + zeros(900) + "e999999999999999999999999":         math.Inf(1),
		strings.Repeat("9", 1000) + "e-1000":                   1,
		strings.Repeat("1", 1000) + "e-1000":                   1.0 / 9,
		"9007199254740993" + zeros(900) + "e-900":              9007199254740992, // a tie, to even
		"9007199254740993" + zeros(900) + "1e-901":             9007199254740994, // just above it
		"9007199254740993" + zeros(200) + "1e-201":             9007199254740994,
		"9007199254740992." + strings.Repeat("9", 900) + "e+0": 9007199254740992,
	} {
		if f := parseFloat(text); f != want || math.Signbit(f) != math.Signbit(want) {
			t.Errorf("%.30s… of %d: %v, want %v", text, len(text), f, want)
		}
	}

	digits := func(r *rand.Rand, n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte('0' + r.IntN(10))
		}
		return string(b)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		whole, fraction := 1+r.IntN(1500), 1+r.IntN(1500)
		text := "1" + digits(r, whole) + "." + digits(r, fraction) + "e" + strconv.Itoa(r.IntN(640)-320-whole)
		x, _, err := big.ParseFloat(text, 10, 12_000, big.ToNearestEven)
		if err != nil {
			t.Fatal(err)
		}
		want, _ := x.Float64()
		if f := parseFloat(text); f != want {
			t.Errorf("%s: %v, want %v", text, f, want)
		}
		d, err := MakeData(JSON, []byte(text))
		if refused := err != nil; refused != math.IsInf(want, 0) {
			t.Errorf("%s, which is %v: %v", text, want, err)
		} else if n, _ := (value{Msgpack, d.In(Msgpack)}).number(); !refused && n.f != want {
			t.Errorf("%s: %v in msgpack, want %v", text, n.f, want)
		}
	}
}

package codec

import (
	"strconv"
	"strings"
)

// longNumber is the length from which on strconv may misread a number: it keeps 800
// digits, and takes a longer integer part for one of 800; of an exponent it reads about
// five digits.
const longNumber = 800

// parseFloat is the float64 nearest to a JSON number; an infinity beyond them all. Both
// codecs, and whoever is sent the text itself, must see one number.
func parseFloat(text string) float64 {
	if len(text) > longNumber {
		text = pointFirst(text)
	}
	f, _ := strconv.ParseFloat(text, 64) // a range error comes with the infinity
	return f
}

// pointFirst is the same number as 0.DIGITSeEXPONENT, the first digit being no zero.
func pointFirst(text string) string {
	text, minus := strings.CutPrefix(text, "-")
	exponent := int64(0)
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		exponent, _ = strconv.ParseInt(text[i+1:], 10, 64) // beyond int64 the nearest
		text = text[:i]
	}
	whole, fraction, _ := strings.Cut(text, ".")
	all := whole + fraction
	digits := strings.TrimLeft(all, "0")
	const far = 1 << 40 // no message has so many digits that they make up for it
	exponent = min(max(exponent, -far), far) + int64(len(whole)-(len(all)-len(digits)))
	sign := ""
	if minus {
		sign = "-"
	}
	return sign + "0." + digits + "e" + strconv.FormatInt(exponent, 10)
}

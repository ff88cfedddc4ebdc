package client_test

import (
	"strings"
	"testing"

	"github.com/yaza-dev/pulse/client"
)

func TestOptionsAreChecked(t *testing.T) {
	for rule, o := range map[string]client.Options{
		"no URL":                 {},
		"a scheme":               {URL: "ftp://example.com"},
		"no host":                {URL: "ws:///v1/ws"},
		"credentials in the URL": {URL: "ws://a:secret@example.com"},
		"no URL at all":          {URL: "ws://a b:secret"},
		"a name":                 {URL: "ws://example.com", Name: string(make([]byte, 129))},
		"a bound":                {URL: "ws://example.com", Events: client.Bound{Items: -1}},
		"a codec":                {URL: "ws://example.com", Codec: 7},
	} {
		c, err := client.New(o)
		if err == nil {
			c.Close()
			t.Errorf("%s is taken", rule)
		} else if s := err.Error(); len(s) > 200 || strings.Contains(s, "secret") {
			t.Errorf("%s: %s", rule, s)
		}
	}
}

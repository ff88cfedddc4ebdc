package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/codec"
)

// A page has members in order of subject, after the one that the last page ended
// with, as many as were asked for and as fit a frame.
func TestPresencePages(t *testing.T) {
	overCodecs(t, func(t *testing.T, in codec.Codec) {
		e := withPresence(t, func(c *Config) {
			c.Limits.MaxMessageBytes, c.Limits.MaxFrameBytes = 1<<10, 10<<10
			seen := seenKind
			seen.History.Bytes = 1 << 20
			c.Kinds = []room.Kind{seen}
		})
		var want []string
		for i := range 25 {
			subject := fmt.Sprintf("m%02d", i*7%25)
			want = append(want, subject)
			watch(t, e, in, "acme/"+subject, `,"presence":true,"data":"`+strings.Repeat("x", 500)+`"`) // told when the bridge has it
		}
		slices.Sort(want)
		c := join(t, e, "acme/z")
		for _, limit := range []int{1, 3, 25, 1000} {
			var got []string
			after, pages := "", 0
			for {
				r, _ := c.ask(fmt.Sprintf(`{"t":"presence","room":"seen:1","limit":%d%s}`, limit, after))
				members, _ := r.at("ok.members").([]any)
				if text, _ := json.Marshal(r); len(text) > 10<<10 || len(members) > limit || fmt.Sprint(r.at("ok.count")) != "25" || len(members) == 0 {
					t.Fatalf("page of at most %d: %d members of %v in %d bytes", limit, len(members), r.at("ok.count"), len(text))
				}
				for _, m := range members {
					got = append(got, m.(map[string]any)["subject"].(string))
				}
				pages++
				next, more := r.at("ok.after").(string)
				if !more {
					break
				}
				after = fmt.Sprintf(`,"after":%q`, next)
			}
			if !slices.Equal(got, want) || limit < 25 && pages != (25+limit-1)/limit || limit >= 25 && pages < 2 {
				t.Errorf("limit %d: %d pages with %v", limit, pages, got)
			}
		}
		r, _ := c.ask(`{"t":"presence","room":"seen:empty"}`)
		if list, ok := r.at("ok.members").([]any); !ok || len(list) != 0 || fmt.Sprint(r.at("ok.count")) != "0" || r.at("ok.after") != nil {
			t.Errorf("a room with nobody: %v", r)
		}
	})
}

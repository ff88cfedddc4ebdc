package bridgetest

import (
	"slices"
	"testing"

	"github.com/yaza-dev/pulse/codec"
)

// testIsolation uses names that meet when joined, cut or folded carelessly.
func testIsolation(t *testing.T, factory Factory) {
	t.Run("topics and tenants do not mix", func(t *testing.T) {
		tr := begin(t, factory)
		var topics []codec.Topic
		for _, tenant := range []string{"a", "A", "a.b", "a-b", "a_b", "-", "buffer"} {
			for _, room := range []string{"b", "b:c", "b:c:d", "b::c", "B:c", "b.c", "b:~", "meta:b", "b:a"} {
				topics = append(topics, topicOf(tenant, room))
			}
		}
		followers := map[codec.Topic]*Follower{}
		for _, topic := range topics {
			f := Follow(tr, topic)
			defer f.Close()
			tr.reach(f, 0)
			followers[topic] = f
		}
		want := map[codec.Topic]string{}
		epochs := map[string]codec.Topic{}
		for _, topic := range topics {
			got := tr.fill(topic, plenty, 1)[0]
			want[topic] = got.EID
			if other, ok := epochs[got.Position.Epoch]; ok {
				t.Errorf("%v and %v share an epoch", topic, other)
			}
			epochs[got.Position.Epoch] = topic
		}
		for _, topic := range topics {
			tr.reach(followers[topic], 1)
			only := []string{want[topic]}
			if got := eids(followers[topic].Log()); !slices.Equal(got, only) {
				t.Errorf("%v: arrived %v, want %v", topic, got, only)
			}
			if got := eids(tr.all(topic).Events); !slices.Equal(got, only) {
				t.Errorf("%v: kept %v, want %v", topic, got, only)
			}
		}
	})
}

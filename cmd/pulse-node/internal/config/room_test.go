package config

import (
	"reflect"
	"testing"

	"github.com/yaza-dev/pulse/actors/room"
)

func TestKindThatSaysNothingIsTheEnginesDefault(t *testing.T) {
	c := mustLoad(t, "rooms: { chat: {} }", nil)
	got, err := c.Rooms["chat"].Kind("chat").Policy()
	if err != nil {
		t.Fatal(err)
	}
	want, err := room.Kind{Name: "chat"}.Policy()
	if err != nil {
		t.Fatal(err)
	}
	got.Kind, want.Kind = nil, nil // the declarations themselves
	if !reflect.DeepEqual(got, want) {
		t.Errorf("from configuration\n%+v\nfrom the engine\n%+v", got, want)
	}
}

func TestSizesAreWrittenAsTheyAreRead(t *testing.T) {
	for _, text := range []string{"0B", "1B", "1023B", "1KiB", "64KiB", "1025B", "1MiB", "3GiB", "4096GiB"} {
		size, err := parseSize(text)
		if err != nil || size.String() != text {
			t.Errorf("%s is read as %d, written as %s (%v)", text, size, size, err)
		}
	}
}

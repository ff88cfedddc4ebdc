package session

import (
	"reflect"
	"testing"

	"github.com/yaza-dev/pulse/actors/message"
)

// What is needed keeps it, each by itself.
func TestSeldomIsKeptWhileAnythingOfItIsNeeded(t *testing.T) {
	const now = int64(tellEvery) / 2
	needs := map[string]func(*seldom){
		"hello":     func(r *seldom) { r.hello = new(opened) },
		"commands":  func(r *seldom) { r.commands.add(new(message.Command)) },
		"refresh":   func(r *seldom) { r.refresh = new(refresh) },
		"inquiries": func(r *seldom) { r.inquiries = new(inquiries) },
		"pace":      func(r *seldom) { r.pace.refused(now) },
		"reach":     func(r *seldom) { r.reach = new(reach) },
		"deadline":  func(r *seldom) { r.deadline = now },
		"untold":    func(r *seldom) { r.untold = true },
		"told":      func(r *seldom) { r.told = now },
	}
	fields := reflect.TypeFor[seldom]()
	for i := range fields.NumField() {
		var r seldom
		if !r.idle(now) {
			t.Fatal("kept for nothing")
		}
		name := fields.Field(i).Name
		if needs[name] == nil {
			t.Fatalf("nobody says what %s means", name)
		}
		if needs[name](&r); r.idle(now) {
			t.Errorf("given up with %s", name)
		}
	}
	if r := (seldom{told: now}); !r.idle(now + int64(tellEvery)) {
		t.Error("kept when memberships may be told again")
	}
}

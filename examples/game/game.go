package main

import (
	"context"
	"time"

	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/codec"
)

// seats is how many members a room has, the players among them.
const seats = 100

// game is the room's handler: the round, and what goes on around it.
type game struct {
	round
	away time.Duration                      // how long a player may be gone
	save func(context.Context, round) error // may block
}

// Publish decides whether the event would be right, after all that has happened so
// far. It changes nothing.
func (g *game) Publish(_ *room.Context, e *room.Event) error {
	var cell int
	if e.Name != "move" || e.From == "" || e.Data.Unmarshal(&cell) != nil {
		return room.Refuse(codec.CodeBadRequest, "players move, and do nothing else")
	}
	tried := g.round
	return tried.move(e.From, cell)
}

// Apply lets it happen. Of two moves that were accepted at the same time the second
// is not right any more: nothing comes of it, on every node alike.
func (g *game) Apply(_ *room.Context, e *room.Applied) {
	var cell int
	var loser string
	switch tried := g.round; {
	case e.Name == "move" && e.Data.Unmarshal(&cell) == nil && tried.move(e.From, cell) == nil:
		g.round = tried
	case e.Name == "forfeit" && e.Data.Unmarshal(&loser) == nil:
		g.forfeit(loser)
	}
}

// Snapshot is what who joins is given, and what the next handler begins with.
func (g *game) Snapshot() (any, error) { return g.round, nil }

func (g *game) Restore(state codec.Data, _ codec.Position) error { return state.Unmarshal(&g.round) }

// Join keeps the table small.
func (g *game) Join(ctx *room.Context, _ *room.Member) error {
	if len(ctx.Members()) >= seats {
		return room.Refuse(codec.CodeForbidden, "the table is full")
	}
	return nil
}

// Leave gives a player some time to come back. The room goes on meanwhile, so what
// the timer relies on is looked at again when it is due.
func (g *game) Leave(ctx *room.Context, m *room.Member) {
	subject := m.Subject
	_, err := ctx.After(g.away, func(ctx *room.Context) {
		if !g.plays(subject) || isHere(ctx, subject) {
			return
		}
		if err := ctx.Broadcast("forfeit", subject); err != nil {
			ctx.Log().Warn("a forfeit was not told", "err", err)
		}
	})
	if err != nil {
		ctx.Log().Warn("a player may stay away", "err", err)
	}
}

// Command answers "board" at once, and "save" when that is done.
func (g *game) Command(ctx *room.Context, c *room.Command) (any, error) {
	switch c.Name {
	case "board":
		return g.round, nil
	case "save":
		state, reply := g.round, c.Later()
		err := ctx.Go(
			func(work context.Context) (any, error) { return state.Moves, g.save(work, state) },
			func(_ *room.Context, moves any, err error) { reply.Answer(moves, err) })
		if err != nil {
			reply.Answer(nil, room.Refuse(codec.CodeConflict, "too much is being saved"))
		}
		return nil, nil
	}
	return nil, room.Refuse(codec.CodeNotFound, "board and save are all there is")
}

func isHere(ctx *room.Context, subject string) bool {
	for _, m := range ctx.Members() {
		if m.Subject == subject {
			return true
		}
	}
	return false
}

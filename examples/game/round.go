package main

import (
	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/codec"
)

// round is one round of three in a row: a plain value that knows the rules. Its
// JSON is what clients are given.
type round struct {
	Board   [9]int    `json:"board"`   // 0, or the player whose cell it is: 1 or 2
	Players [2]string `json:"players"` // in the order of their first moves
	Moves   int       `json:"moves"`
	Winner  string    `json:"winner,omitempty"`
}

var rows = [...][3]int{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {0, 3, 6}, {1, 4, 7}, {2, 5, 8}, {0, 4, 8}, {2, 4, 6}}

// move takes a cell for a player, or says why not.
func (r *round) move(by string, cell int) error {
	next := r.Moves % 2
	switch {
	case cell < 0 || cell > 8:
		return room.Refuse(codec.CodeBadRequest, "a move is a cell, 0 to 8")
	case r.Winner != "" || r.Moves == 9:
		return room.Refuse(codec.CodeConflict, "the round is over")
	case r.Board[cell] != 0:
		return room.Refuse(codec.CodeConflict, "the cell is taken")
	case r.Players[next] != by && (r.Players[next] != "" || by == r.Players[0]):
		return room.Refuse(codec.CodeConflict, "not your turn")
	}
	r.Players[next], r.Board[cell] = by, next+1
	r.Moves++
	for _, row := range rows {
		if p := r.Board[row[0]]; p == next+1 && r.Board[row[1]] == p && r.Board[row[2]] == p {
			r.Winner = by
		}
	}
	return nil
}

// forfeit gives the round to the other player.
func (r *round) forfeit(loser string) {
	for i, p := range r.Players {
		if p == loser && r.Winner == "" {
			r.Winner = r.Players[1-i]
		}
	}
}

func (r *round) plays(subject string) bool {
	return r.Winner == "" && (subject == r.Players[0] || subject == r.Players[1])
}

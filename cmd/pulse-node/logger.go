package main

import (
	"io"
	"log/slog"

	"github.com/yaza-dev/pulse/cmd/pulse-node/internal/config"
)

// newLogger makes the logger of a node. Its least level follows level, which a reload
// may change.
func newLogger(w io.Writer, c config.Log, level *slog.LevelVar) *slog.Logger {
	level.Set(levelOf(c))
	options := &slog.HandlerOptions{Level: level}
	if c.Format == "text" {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}

func levelOf(c config.Log) slog.Level {
	return map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}[c.Level]
}

package main

import (
	"io"
	"log/slog"

	"github.com/yaza-dev/pulse/cmd/pulse-node/internal/config"
)

func newLogger(w io.Writer, c config.Log) *slog.Logger {
	level := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}[c.Level]
	options := &slog.HandlerOptions{Level: level}
	if c.Format == "text" {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}

package actors

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/yaza-dev/pulse/actors/mailbox"
)

// discreet is the logger that protoactor gets. protoactor logs messages and
// panic values as they are; they may hold tokens and bodies, so every value but
// process ids, panics and plain numbers is replaced by its type. What it has to
// say below a warning, such as that it has started, is of no use to an operator.
func discreet(l *slog.Logger) *slog.Logger {
	if l == nil {
		l = slog.New(slog.DiscardHandler)
	}
	return slog.New(discreetHandler{l.Handler()})
}

type discreetHandler struct{ next slog.Handler }

func (h discreetHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.next.Enabled(ctx, level)
}

func (h discreetHandler) Handle(ctx context.Context, r slog.Record) error {
	clean := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(hide(a))
		return true
	})
	return h.next.Handle(ctx, clean)
}

func (h discreetHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = hide(a)
	}
	return discreetHandler{h.next.WithAttrs(clean)}
}

func (h discreetHandler) WithGroup(name string) slog.Handler {
	return discreetHandler{h.next.WithGroup(name)}
}

func hide(a slog.Attr) slog.Attr {
	if a.Value.Kind() != slog.KindAny && a.Value.Kind() != slog.KindLogValuer {
		if a.Value.Kind() == slog.KindGroup || a.Value.Kind() == slog.KindString {
			return slog.String(a.Key, a.Value.Kind().String())
		}
		return a
	}
	switch v := a.Value.Any().(type) {
	case *actor.PID:
		return slog.String(a.Key, v.Id+"~"+strconv.FormatUint(uint64(v.RequestId), 10))
	case *mailbox.Panic:
		return slog.Attr{Key: a.Key, Value: v.LogValue()}
	default:
		return slog.String(a.Key, fmt.Sprintf("%T", v))
	}
}

package main

import (
	"context"
	"errors"
	"log/slog"
	"reflect"

	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/cmd/pulse-node/internal/config"
	"github.com/yaza-dev/pulse/engine"
)

// reloader takes over, while a node runs, what of a configuration can change. Owned
// by the goroutine that runs the node.
type reloader struct {
	load        func() (*config.Config, error)
	log         *slog.Logger
	level       *slog.LevelVar
	certificate *certificate // nil: plain
	nodes       *redisBridge // nil: it stands alone

	config *config.Config // in force
	jwt    *auth.JWT      // in use
}

// reload reads the configuration again. What is wrong with it is told, and then
// nothing is changed.
func (r *reloader) reload(e *engine.Engine) {
	if err := r.try(e); err != nil {
		var faults config.Faults
		if !errors.As(err, &faults) {
			faults = config.Faults{{Problem: err.Error()}}
		}
		for _, f := range faults {
			r.log.Error("configuration not reloaded", "setting", f.Key, "source", f.Source, "err", f.Problem)
		}
	}
}

func (r *reloader) try(e *engine.Engine) error {
	read, err := r.load()
	if err != nil {
		return err
	}
	next := r.config.Adopt(read)
	if verifies(r.config) && !verifies(next) { // such as a file that is being written
		return config.Faults{{Key: "auth.jwt.keys", Source: "self-check", Problem: "with none every client would be refused: a node that runs keeps those that it has"}}
	}
	var files *pair
	switch {
	case (next.TLS.CertFile == "") != (r.certificate == nil):
		r.stays("tls")
		next.TLS = r.config.TLS
	case r.certificate != nil:
		if files, err = readPair(next.TLS); err != nil {
			return err
		}
	}
	jwt := r.jwt // with the keys that it has fetched
	if !reflect.DeepEqual(next.Auth.JWT, r.config.Auth.JWT) {
		if jwt, err = newJWT(next, r.log); err != nil {
			return err
		}
	}
	unused := jwt
	defer func() {
		if unused != r.jwt {
			unused.Close()
		}
	}()
	if err := selfCheck(context.Background(), next, jwt); err != nil {
		return err
	}
	kept, err := e.Reload(engineConfig(next, jwt, r.log))
	if err != nil {
		return err
	}
	// Nothing fails from here on.
	if files != nil {
		r.certificate.read.Store(files)
	}
	r.level.Set(levelOf(next.Log))
	r.nodes.reload(next)
	for _, c := range r.config.Changes(next) {
		r.log.Info("configuration changed", "setting", c.Path, "from", c.From, "to", c.To)
	}
	for _, c := range r.config.Changes(read) {
		if !c.Live {
			r.stays(c.Path)
		}
	}
	for _, f := range kept {
		r.log.Warn("kind of room stays as it was until the next start", "room_kind", f.Kind, "event", f.Event, "why", f.Problem)
	}
	unused, r.config, r.jwt = r.jwt, next, jwt
	r.log.Info("configuration reloaded")
	r.warn()
	return nil
}

func (r *reloader) stays(setting string) {
	r.log.Warn("setting stays as it was until the next start", "setting", setting)
}

// warn tells of what is no fault, and hardly meant.
func (r *reloader) warn() {
	if !verifies(r.config) {
		r.log.Warn("no key verifies tokens: every client will be refused", "setting", "auth.jwt.keys")
	}
	for _, f := range r.config.Idle() {
		r.log.Warn("setting changes nothing", "setting", f.Key, "why", f.Problem)
	}
}

// verifies tells whether c has what takes any token.
func verifies(c *config.Config) bool {
	return len(c.Auth.JWT.Keys) > 0 || c.Auth.JWT.JWKS.URL != ""
}

func (r *reloader) close() { r.jwt.Close() }

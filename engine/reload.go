package engine

import (
	"fmt"
	"maps"
	"slices"

	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/actors/room"
	"github.com/yaza-dev/pulse/actors/tenant"
	"github.com/yaza-dev/pulse/auth"
)

// terms are what Reload may change. Immutable.
type terms struct {
	authenticator auth.Authenticator
	defaults      TenantLimits
	tenants       map[string]TenantLimits
}

func newTerms(cfg *Config) *terms {
	return &terms{authenticator: cfg.Authenticator, defaults: cfg.TenantDefaults, tenants: maps.Clone(cfg.Tenants)}
}

// tenant is the limits of one tenant.
func (t *terms) tenant(name string) TenantLimits {
	l := t.tenants[name]
	l.defaults(t.defaults)
	return l
}

func (t *TenantLimits) ofTenant() tenant.Limits {
	return tenant.Limits{
		Weight: t.Weight, MaxSessions: t.MaxSessions, MaxRooms: t.MaxRooms,
		QueueBytes: t.QueueBytes, ReplayBytes: t.ReplayBytes,
	}
}

// Reload takes over, while the Engine runs, what of cfg may change: Authenticator,
// Kinds, TenantDefaults, Tenants, Origins and RefuseMissingOrigin. What else it says
// is not looked at. All faults are reported at once, and then nothing is changed.
//
// Requests and rooms from now on have the new kinds; a room that lives keeps its
// history and its bounds until it ends, and one of a kind that is not declared any
// more is left by its members. A kind that is declared so that rooms which live could
// not serve it stays as it was, which kept tells. Sessions keep the credentials that
// they have; limits that are lower than what there is end nothing.
func (e *Engine) Reload(cfg Config) (kept []*room.Fault, err error) {
	e.reloading.Lock()
	defer e.reloading.Unlock()
	cfg.Node, cfg.Logger, cfg.DeploymentKeys, cfg.Limits = e.cfg.Node, e.cfg.Logger, e.cfg.DeploymentKeys, e.cfg.Limits
	kinds, err := cfg.prepare()
	if err != nil {
		return nil, err
	}
	was, old := e.terms.Load(), e.kinds.All()
	now := newTerms(&cfg)
	all := maps.Clone(old)
	maps.Copy(all, kinds)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		faults := unfit(name, old.Of(name), kinds.Of(name))
		if kept = append(kept, faults...); len(faults) == 0 {
			continue
		}
		if old[name] == nil { // it was, and stays, one of those not listed
			delete(kinds, name)
			continue
		}
		kinds[name] = old[name]
	}
	for name, kind := range kinds {
		switch {
		case old[name] != nil:
			kind.Meter = old[name].Meter
		case e.kindMeter != nil:
			kind.Meter = e.kindMeter(name)
		}
	}
	e.terms.Store(now)
	e.kinds.Set(kinds)
	e.admission.origins.Store(newOrigins(&cfg))
	if e.ownBroker != nil {
		e.ownBroker.Reconsider()
	}
	for _, n := range e.all() { // those that begin now have the new terms
		limits, had := now.tenant(n.Name()), was.tenant(n.Name())
		n.Limit(limits.ofTenant())
		if limits.SessionRate != had.SessionRate {
			n.rates.Set(limited(limits.SessionRate))
		}
		if limits.Rate != had.Rate {
			n.rates.SetAll(limited(limits.Rate))
		}
		n.Notice()
	}
	return kept, nil
}

// unfit is why rooms that began as was cannot serve requests of the kind as it is to
// be. A kind that begins or ends always fits.
func unfit(name string, was, is *message.Policy) (faults []*room.Fault) {
	if was == nil || is == nil {
		return nil
	}
	fault := func(event, what string) {
		faults = append(faults, &room.Fault{Kind: name, Event: event, Problem: fmt.Sprintf("%s cannot change while the node runs", what)})
	}
	if was.Presence != is.Presence {
		fault("", "presence")
	}
	if (was.History.Events == 0) != (is.History.Events == 0) {
		fault("", "whether there is a history")
	}
	if was.Lane != is.Lane {
		fault("", "the lane of buffered events")
	}
	all := maps.Clone(was.Events)
	maps.Copy(all, is.Events)
	for _, event := range slices.Sorted(maps.Keys(all)) {
		if a, b := was.Event(event), is.Event(event); a != nil && b != nil && a.Delivery != b.Delivery {
			fault(event, "delivery")
		}
	}
	return faults
}

package engine

import (
	"runtime"

	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/internal/telemetry"
)

// put is given one value of an instrument, with its labels in the table's order.
type put func(n float64, labels ...string)

// reading reads one instrument out of a view.
type reading struct {
	what *telemetry.Instrument
	read func(*view, put)
}

// readings are all instruments but the histograms.
func readings(b *brokerCounts) []reading {
	return []reading{
		{&telemetry.Connections, func(v *view, put put) { put(float64(v.connections)) }},
		{&telemetry.Sessions, func(v *view, put put) {
			put(float64(v.attached), "attached")
			put(float64(v.detached), "detached")
		}},
		{&telemetry.Actors, func(v *view, put put) {
			put(float64(v.allTenants), "tenant")
			put(float64(v.allRooms), "room")
			put(float64(v.attached), "session")
		}},
		{&telemetry.Rooms, func(v *view, put put) {
			for kind, n := range v.rooms {
				put(float64(n), kind)
			}
		}},
		{&telemetry.Members, func(v *view, put put) { put(float64(v.members)) }},
		{&telemetry.MailboxDepth, func(v *view, put put) {
			for kind, depths := range v.depths {
				for l, n := range depths {
					put(float64(n), kind, backpressure.Lane(l).String())
				}
			}
		}},
		{&telemetry.Ledger, func(v *view, put put) {
			put(float64(v.stats.QueueBytes), "queues")
			put(float64(v.stats.ReplayBytes), "replay")
			if own := v.e.ownBroker; own != nil {
				put(float64(own.Used()), "history")
			}
		}},

		{&telemetry.Messages, func(v *view, put put) { put(float64(v.e.counts.messages.Load())) }},
		{&telemetry.Received, func(v *view, put put) { put(float64(v.e.counts.received.Load())) }},
		{&telemetry.SentFrames, func(v *view, put put) { put(float64(v.pool.Frames)) }},
		{&telemetry.Sent, func(v *view, put put) { put(float64(v.pool.Bytes)) }},
		{&telemetry.Outcomes, func(v *view, put put) {
			v.meters(func(kind string, m *message.Meter) {
				for o := codec.Accepted; o <= codec.Coalesced; o++ {
					put(float64(m.Taken[o].Load()), kind, o.String())
				}
				put(float64(m.Duplicates.Load()), kind, "duplicate")
				codes(&m.Refused, func(code string, n float64) { put(n, kind, code) })
			})
		}},
		{&telemetry.Closes, func(v *view, put put) {
			for c := codec.CauseNormal; c <= codec.CauseAbrupt; c++ {
				put(float64(v.stats.Closes[c]), c.String())
			}
		}},
		{&telemetry.Protocol, func(v *view, put put) {
			put(float64(v.stats.Closes[codec.CauseMalformed]), "malformed")
			codes(&v.e.counts.faults, func(code string, n float64) { put(n, code) })
		}},

		{&telemetry.Overflow, func(v *view, put put) {
			for l := range v.stats.Dropped {
				lane := backpressure.Lane(l).String()
				for p, n := range v.stats.Dropped[l] {
					if n > 0 {
						put(float64(n), backpressure.Policy(p).String(), lane, "dropped")
					}
				}
				if n := v.stats.Coalesced[l]; n > 0 {
					put(float64(n), backpressure.CoalesceLatest.String(), lane, "coalesced")
				}
			}
		}},
		{&telemetry.Shed, func(v *view, put put) { byLane(&v.stats.Shed, put) }},
		{&telemetry.Expired, func(v *view, put put) { byLane(&v.stats.Expired, put) }},
		{&telemetry.Behind, func(v *view, put put) {
			put(float64(v.stats.Behind), "queue")
			put(float64(v.stats.Unacked), "unacked")
		}},
		{&telemetry.Fed, func(v *view, put put) { put(float64(v.stats.Fed)) }},
		{&telemetry.Resets, func(v *view, put put) {
			for r := codec.ResetNone + 1; r <= codec.ResetOverflow; r++ {
				put(float64(v.stats.Resets[r]), r.String())
			}
		}},

		{&telemetry.Workers, func(v *view, put put) {
			put(float64(v.pool.Busy), "busy")
			put(float64(v.pool.Workers-v.pool.Busy), "idle")
			put(float64(v.pool.Stuck), "stuck")
		}},
		{&telemetry.WorkerBusy, func(v *view, put put) { put(v.pool.Work.Seconds()) }},
		{&telemetry.TasksReady, func(v *view, put put) { put(float64(v.pool.Ready)) }},
		{&telemetry.Watchdog, func(v *view, put put) { put(float64(v.pool.Hits)) }},
		{&telemetry.Blocking, func(v *view, put put) {
			put(float64(v.pool.Blocks), "running")
			put(float64(v.pool.Waiting), "waiting")
		}},
		{&telemetry.Timers, func(v *view, put put) { put(float64(v.e.wheel.Armed())) }},
		{&telemetry.Restarts, func(v *view, put put) {
			for i, kind := range restartKinds {
				put(float64(v.e.counts.restarts[i].Load()), kind)
			}
			handlers := uint64(0)
			v.meters(func(_ string, m *message.Meter) { handlers += m.Handlers.Load() })
			put(float64(handlers), "handler")
		}},

		{&telemetry.TenantSessions, func(v *view, put put) {
			for label, t := range v.tenants {
				put(t.sessions, label)
			}
		}},
		{&telemetry.TenantRooms, func(v *view, put put) {
			for label, t := range v.tenants {
				put(t.rooms, label)
			}
		}},
		{&telemetry.TenantQueue, func(v *view, put put) {
			for label, t := range v.tenants {
				put(t.queue, label)
			}
		}},

		{&telemetry.BrokerPublishes, func(v *view, put put) {
			v.meters(func(kind string, m *message.Meter) {
				put(float64(m.Broker.Taken.Load()), kind, "ok")
				put(float64(m.Broker.Duplicates.Load()), kind, "duplicate")
				codes(&m.Broker.Refused, func(code string, n float64) { put(n, kind, code) })
			})
		}},
		{&telemetry.BrokerReceives, func(v *view, put put) {
			v.meters(func(kind string, m *message.Meter) { put(float64(m.Broker.Received.Load()), kind) })
		}},
		{&telemetry.BrokerWrites, func(_ *view, put put) { put(float64(b.writes.Load())) }},
		{&telemetry.BrokerReads, func(_ *view, put put) {
			put(float64(b.hits.Load()), "hit")
			put(float64(b.misses.Load()), "miss")
		}},
		{&telemetry.BrokerFilled, func(v *view, put put) {
			v.meters(func(kind string, m *message.Meter) { put(float64(m.Broker.Filled.Load()), kind) })
		}},
		{&telemetry.BrokerUnfilled, func(v *view, put put) {
			v.meters(func(kind string, m *message.Meter) { put(float64(m.Broker.Unfilled.Load()), kind) })
		}},
		{&telemetry.BrokerOutages, func(v *view, put put) { put(float64(v.broker.Outages)) }},
		{&telemetry.BrokerResubscribed, func(v *view, put put) { put(float64(v.broker.Resubscribed)) }},
		{&telemetry.BrokerProbes, func(v *view, put put) { put(float64(v.broker.ProbesMissed)) }},
		{&telemetry.BrokerUnreadable, func(v *view, put put) { put(float64(v.broker.Unreadable)) }},
		{&telemetry.BrokerQueue, func(v *view, put put) { put(float64(v.broker.Waiting)) }},
		{&telemetry.BrokerLive, func(v *view, put put) {
			live := 0.0
			if v.e.broker.Health().State.Live() {
				live = 1
			}
			put(live)
		}},
		{&telemetry.Build, func(v *view, put put) {
			put(1, v.e.cfg.Build.Version, v.e.cfg.Build.Revision, runtime.Version())
		}},
	}
}

// codes puts those refusals that there were, by their code.
func codes(refused *message.Refusals, each func(code string, n float64)) {
	for c := range refused {
		if n := refused[c].Load(); n > 0 {
			each(codec.Code(c).String(), float64(n))
		}
	}
}

func byLane(counts *[backpressure.Lanes]uint64, put put) {
	for l, n := range counts {
		put(float64(n), backpressure.Lane(l).String())
	}
}

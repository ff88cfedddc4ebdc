package engine

import (
	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/bridge"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/internal/telemetry"
	"github.com/yaza-dev/pulse/scheduler"
)

// view is what there is at the moment of a scrape, counted in the sets that hold it.
// It costs some tenth of a microsecond for each room and session, and holds no lock
// for longer than a set takes to be listed.
type view struct {
	e      *Engine
	stats  Stats
	pool   scheduler.Stats
	broker bridge.Counts

	connections        int
	attached, detached int
	members            int
	rooms              map[string]int // by kind, as declared
	allRooms           int
	depths             map[string]*mailbox.Depths // by kind of actor
	tenants            map[string]*tenantView     // by label
	allTenants         int
}

// tenantView is what is told of one tenant, or of all that have no label of their own.
type tenantView struct{ sessions, rooms, queue float64 }

func (e *Engine) view() *view {
	v := &view{
		e: e, stats: e.Stats(), pool: e.pool.Stats(), broker: e.brokerStats(), connections: e.connections.count(),
		rooms:   make(map[string]int, len(e.kinds.All())),
		depths:  map[string]*mailbox.Depths{"tenant": {}, "room": {}, "session": {}, "outbound": {}},
		tenants: make(map[string]*tenantView),
	}
	for kind := range e.kinds.All() {
		v.rooms[kind] = 0
	}
	var live []attached
	live, v.detached = e.leases.held()
	v.attached = len(live)
	perTenant := make(map[string]int)
	for _, a := range live {
		perTenant[a.tenant]++
		v.members += a.session.Load(v.depths["session"], v.depths["outbound"])
	}
	for _, n := range e.all() {
		v.allTenants++
		v.depths["tenant"].Add(n.Mailbox())
		rooms := 0
		n.EachRoom(func(name string, m *mailbox.Mailbox) {
			rooms++
			v.depths["room"].Add(m)
			if kind := e.kinds.Of(codec.RoomKind(name)); kind != nil {
				v.rooms[kind.Name]++
			}
		})
		v.allRooms += rooms
		t := v.tenants[n.label]
		if t == nil {
			t = &tenantView{}
			v.tenants[n.label] = t
		}
		t.sessions += float64(perTenant[n.Name()])
		t.rooms += float64(rooms)
		t.queue += float64(n.Queue().Used())
	}
	return v
}

// meters calls f for each kind that is measured.
func (v *view) meters(f func(kind string, m *message.Meter)) {
	for name, p := range v.e.kinds.All() {
		if p.Meter != nil {
			f(name, p.Meter)
		}
	}
}

// labels gives tenants labels of their own, as many as are allowed.
type labels struct {
	max, given int // guarded by Engine.mu
}

func (l *labels) take(tenant string) string {
	if l.given >= l.max {
		return telemetry.OtherTenants
	}
	l.given++
	return tenant
}

func (l *labels) give(label string) {
	if label != telemetry.OtherTenants {
		l.given--
	}
}

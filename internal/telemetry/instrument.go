package telemetry

// Kind is how an instrument behaves.
type Kind uint8

const (
	Counter   Kind = iota // only rises
	Gauge                 // what there is now
	Histogram             // how long something took
)

var kindNames = [...]string{"counter", "gauge", "histogram"}

func (k Kind) String() string { return kindNames[k] }

// Labels that instruments may have. The values of each are few and are chosen by the
// engine, its configuration or the program that embeds it, never by a client.
const (
	RoomKind = "room_kind" // as declared; "*" for kinds that are not listed
	KindOf   = "kind"      // of an actor, or of a fault
	Lane     = "lane"
	Outcome  = "outcome"
	Policy   = "policy"
	Action   = "action"
	Reason   = "reason"
	Cause    = "cause"
	Scope    = "scope"
	State    = "state"
	Tenant   = "tenant"
	Hit      = "hit"
	Version  = "version"
	Revision = "revision"
	Go       = "go"
)

// OtherTenants is the tenant label of all tenants without one of their own. It is no
// tenant's name.
const OtherTenants = "~other"

// Instrument is one row of the table.
type Instrument struct {
	Name   string // in OpenTelemetry
	Kind   Kind
	Unit   string // of UCUM: "s", "By"; empty: a number of things
	Labels []string
	Doc    string
	// Sampled: one in so many is measured; 0: all are.
	Sampled int
	// Buckets of a Histogram, upper bounds.
	Buckets []float64
}

// seconds are the buckets of times within a node: from what a turn takes to what a
// client notices.
var seconds = []float64{
	.000_01, .000_025, .000_1, .000_25, .001, .002_5, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10,
}

var milliseconds = []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 5_000}

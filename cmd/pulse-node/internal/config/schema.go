package config

import (
	"net/netip"
	"time"

	"github.com/yaza-dev/pulse/auth"
)

// Config is everything that pulse-node can be told. A field's tags:
//
//	key      its name in the file; with those above it, joined by dots, its path
//	default  its default, in the words of the file
//	zero     what zero means; without this tag zero is a fault
//	oneof    the words it may be
//	later    "*": a build that has this part will come, only the default is
//	         accepted until then; else the words of oneof of which that is true
//	secret   its value is shown to nobody
//	live     a running node takes it over, and all that is below it
//	inherit  the path whose values stand for what an entry of the map leaves out
//	doc      what it is
//
// A field without a key is no setting: Load makes it of those that are.
//
// Names of maps and entries of lists of objects live in the file only; all else
// may come from the environment and from flags too.
type Config struct {
	Listen             string   `key:"listen" default:":8080" doc:"public listener, host:port; port 0: any free one"`
	TLS                TLS      `key:"tls" live:"true"`
	Origins            []string `key:"origins" live:"true" doc:"accepted besides same-origin: scheme://host[:port]"`
	AllowMissingOrigin bool     `key:"allow_missing_origin" default:"true" live:"true" doc:"clients that are no browsers"`
	TrustedProxies     []string `key:"trusted_proxies" doc:"CIDRs whose X-Forwarded headers are believed"`

	Internal       Internal          `key:"internal"`
	Auth           Auth              `key:"auth"`
	Transport      Transport         `key:"transport"`
	Session        Session           `key:"session"`
	Node           Node              `key:"node"`
	TenantDefaults Tenant            `key:"tenant_defaults" live:"true"`
	Tenants        map[string]Tenant `key:"tenants" inherit:"tenant_defaults" live:"true" doc:"by tenant; what is not said comes from tenant_defaults"`
	Rooms          map[string]Room   `key:"rooms" live:"true" doc:"by kind; \"*\" for kinds not listed"`

	Bridge            Bridge    `key:"bridge"`
	DeploymentKeyFile string    `key:"deployment_key_file" doc:"seals resume tokens; the same on every node: base64 of 32 bytes a line"`
	Log               Log       `key:"log"`
	Telemetry         Telemetry `key:"telemetry"`

	Proxies        []netip.Prefix // what TrustedProxies come to
	DeploymentKeys [][]byte       // what DeploymentKeyFile holds
	RedisPassword  string         // what bridge.redis.password_file holds
}

// TLS of the public listener; both files or none.
type TLS struct {
	CertFile string `key:"cert_file" doc:"certificate chain, PEM"`
	KeyFile  string `key:"key_file" doc:"private key, PEM"`
}

// Internal is the listener for operators.
type Internal struct {
	Listen  string `key:"listen" default:"127.0.0.1:8081" doc:"internal listener, host:port; port 0: any free one"`
	APIKeys []any  `key:"api_keys" later:"*" doc:"of the server API"`
}

// Auth says how clients are known.
type Auth struct {
	Cookie string `key:"cookie" doc:"name of a cookie that holds a token"`
	JWT    JWT    `key:"jwt" live:"true"`
}

// JWT says which tokens are accepted.
type JWT struct {
	Keys        []Key         `key:"keys" doc:"that verify tokens; the first that can also signs"`
	JWKS        JWKS          `key:"jwks"`
	Issuer      string        `key:"issuer" doc:"checked when set"`
	Audience    string        `key:"audience" doc:"checked when set"`
	TenantClaim string        `key:"tenant_claim" default:"tenant" doc:"claim that names the tenant"`
	Leeway      time.Duration `key:"leeway" default:"5s" zero:"none" doc:"for clocks that differ"`
}

// JWKS fetches keys.
type JWKS struct {
	URL     string        `key:"url" doc:"key set to fetch"`
	Refresh time.Duration `key:"refresh" default:"10m" doc:"how often"`
}

// Key verifies tokens.
type Key struct {
	Alg           string `key:"alg" oneof:"HS256 RS256 ES256 EdDSA" doc:"algorithm"`
	KID           string `key:"kid" doc:"of the tokens it is for; empty: any"`
	SecretFile    string `key:"secret_file" doc:"file with the secret: raw bytes for HS256, a private key as PEM for the others"`
	SecretEnv     string `key:"secret_env" doc:"environment variable with the secret"`
	Secret        string `key:"secret" secret:"true" doc:"the secret itself"`
	PublicKeyFile string `key:"public_key_file" doc:"public key as PEM, for all but HS256"`

	Key auth.Key // what they come to
}

// Transport is what holds for every connection.
type Transport struct {
	HandshakeTimeout             time.Duration `key:"handshake_timeout" default:"10s" doc:"from accept to a valid hello"`
	Ping                         time.Duration `key:"ping" default:"25s" doc:"silence after which the server pings"`
	PongTimeout                  time.Duration `key:"pong_timeout" default:"8s" doc:"silence after a ping that ends the connection"`
	MaxMessageBytes              Size          `key:"max_message_bytes" default:"64KiB" doc:"largest message of a client"`
	MaxFrameBytes                Size          `key:"max_frame_bytes" default:"512KiB" doc:"largest frame to a client"`
	WriteTimeout                 time.Duration `key:"write_timeout" default:"10s" doc:"for a socket that takes nothing"`
	Compression                  Compression   `key:"compression"`
	WebSocket                    bool          `key:"websocket" default:"true" later:"*" doc:"serve WebSocket"`
	SSE                          bool          `key:"sse" default:"true" later:"*" doc:"serve Server-Sent Events"`
	MaxUnauthenticated           int           `key:"max_unauthenticated" default:"1000" doc:"connections without hello, in all"`
	MaxUnauthenticatedPerAddress int           `key:"max_unauthenticated_per_address" default:"100" doc:"connections without hello, of one address"`
	AcceptRate                   AcceptRate    `key:"accept_rate"`
}

// AcceptRate is how fast connections may come.
type AcceptRate struct {
	Connections int `key:"connections" default:"5000" zero:"no limit" doc:"new WebSocket connections, a second"`
	PerAddress  int `key:"per_address" default:"2500" zero:"no limit" doc:"of one address"`
}

// Compression of messages.
type Compression struct {
	Enabled   bool `key:"enabled" default:"false" doc:"offer permessage-deflate"`
	Threshold Size `key:"threshold" default:"1KiB" doc:"smallest message to compress"`
}

// Session bounds one session.
type Session struct {
	Queue         SessionQueue  `key:"queue"`
	MaxRooms      int           `key:"max_rooms" default:"128" doc:"rooms joined at once"`
	ResumeTTL     time.Duration `key:"resume_ttl" default:"5m" doc:"life of a session without a connection"`
	PresenceGrace time.Duration `key:"presence_grace" default:"15s" zero:"leave at once" doc:"before a lost session leaves"`
	Unacked       int           `key:"unacked" default:"256" doc:"require_ack events sent to one membership and not acknowledged"`
}

// SessionQueue bounds what waits for one client.
type SessionQueue struct {
	Items int  `key:"items" default:"1024" doc:"frames that wait for one client"`
	Bytes Size `key:"bytes" default:"1MiB" doc:"bytes that wait for one client"`
}

// Node bounds the process.
type Node struct {
	MaxSessions     int           `key:"max_sessions" default:"100000" doc:"live connections"`
	QueueBytes      Size          `key:"queue_bytes" default:"1GiB" doc:"all queues of the node"`
	HistoryBytes    Size          `key:"history_bytes" default:"1GiB" doc:"all histories of the memory bridge"`
	ReplayBytes     Size          `key:"replay_bytes" default:"128MiB" doc:"replay in flight"`
	Workers         int           `key:"workers" default:"0" zero:"one per core" doc:"threads of work"`
	BlockingWorkers int           `key:"blocking_workers" default:"64" doc:"handlers that block, at once"`
	DrainTimeout    time.Duration `key:"drain_timeout" default:"25s" doc:"for a clean end"`
	Lease           time.Duration `key:"lease" default:"15s" doc:"of this node in the shared store"`
}

// Tenant bounds one tenant on one node.
type Tenant struct {
	Weight       int         `key:"weight" default:"1" doc:"share of the node's work"`
	MaxSessions  int         `key:"max_sessions" default:"10000" doc:"live connections"`
	MaxRooms     int         `key:"max_rooms" default:"10000" doc:"rooms at once"`
	NewRooms     int         `key:"new_rooms" default:"1000" zero:"no limit" doc:"rooms created a second"`
	QueueBytes   Size        `key:"queue_bytes" default:"64MiB" doc:"all its queues"`
	HistoryBytes Size        `key:"history_bytes" default:"64MiB" doc:"all its histories in the memory bridge"`
	RedisBytes   Size        `key:"redis_bytes" default:"256MiB" doc:"estimated footprint of its history on Redis, shared out over live nodes"`
	ReplayBytes  Size        `key:"replay_bytes" default:"16MiB" doc:"replay in flight"`
	Rate         Rate        `key:"rate"`
	SessionRate  SessionRate `key:"session_rate"`
}

// Rate of all clients of a tenant.
type Rate struct {
	Messages int  `key:"messages" default:"0" zero:"no limit" doc:"of the tenant's clients, a second"`
	Bytes    Size `key:"bytes" default:"0B" zero:"no limit" doc:"of the tenant's clients, a second"`
}

// SessionRate of one session.
type SessionRate struct {
	Messages int  `key:"messages" default:"100" zero:"no limit" doc:"of one session, a second"`
	Bytes    Size `key:"bytes" default:"1MiB" zero:"no limit" doc:"of one session, a second"`
}

// Room declares one kind of rooms.
type Room struct {
	History       History          `key:"history"`
	DedupWindow   time.Duration    `key:"dedup_window" default:"2m" zero:"off" doc:"how long a dedup key is remembered"`
	Presence      bool             `key:"presence" default:"false" doc:"members may see each other"`
	PresenceLimit int              `key:"presence_limit" default:"1000" doc:"members listed"`
	Publish       string           `key:"publish" default:"members" oneof:"members grant server" doc:"who may publish"`
	Mailbox       Mailbox          `key:"mailbox"`
	Linger        time.Duration    `key:"linger" default:"30s" doc:"life of an empty room's actor"`
	Events        map[string]Event `key:"events" doc:"by event; \"*\" for events not listed"`
}

// History bounds what is kept of a room for replay.
type History struct {
	Events int           `key:"events" default:"256" zero:"none" doc:"kept for replay"`
	Age    time.Duration `key:"age" default:"5m" doc:"of an event that is kept"`
	Bytes  Size          `key:"bytes" default:"1MiB" doc:"kept for replay"`
}

// Mailbox bounds what waits for one room.
type Mailbox struct {
	Items int  `key:"items" default:"1024" doc:"messages that wait for one room"`
	Bytes Size `key:"bytes" default:"4MiB" doc:"bytes that wait for one room"`
}

// Event declares one event of a kind.
type Event struct {
	Delivery   string `key:"delivery" default:"at_least_once" oneof:"at_least_once at_most_once transient" doc:"what is promised"`
	Lane       string `key:"lane" default:"interactive" oneof:"interactive bulk lossy" doc:"class of work"`
	Overflow   string `key:"overflow" default:"reject" oneof:"reject drop_oldest coalesce_latest require_ack" doc:"when a queue is full"`
	CoalesceBy string `key:"coalesce_by" doc:"session, from, event or data.FIELD"`
	Secret     bool   `key:"secret" default:"false" doc:"never compressed"`
}

// Bridge connects nodes.
type Bridge struct {
	Redis Redis `key:"redis"`
}

// Redis is the bridge of several nodes.
type Redis struct {
	Addresses            []string      `key:"addresses" doc:"host:port; none: the memory bridge of one node"`
	Mode                 string        `key:"mode" default:"standalone" oneof:"standalone sentinel cluster" doc:"how the servers are arranged"`
	MasterName           string        `key:"master_name" doc:"with sentinel"`
	Username             string        `key:"username" doc:"of the node"`
	PasswordFile         string        `key:"password_file" doc:"of the node"`
	TLS                  bool          `key:"tls" default:"false" doc:"to the servers"`
	KeyPrefix            string        `key:"key_prefix" default:"pulse:" doc:"of every key"`
	ChannelPrefix        string        `key:"channel_prefix" default:"pulse:" doc:"of every channel"`
	CompressionThreshold Size          `key:"compression_threshold" default:"1KiB" doc:"smallest payload to compress"`
	PayloadMax           Size          `key:"payload_max" default:"4MiB" doc:"before compression and after inflating"`
	OutageQueue          OutageQueue   `key:"outage_queue"`
	Check                time.Duration `key:"check" default:"30s" doc:"comparison of the positions of quiet rooms"`
}

// OutageQueue bounds what waits for a lost bridge.
type OutageQueue struct {
	Items int           `key:"items" default:"10000" doc:"events that wait"`
	Bytes Size          `key:"bytes" default:"16MiB" doc:"bytes that wait"`
	Wait  time.Duration `key:"wait" default:"5s" zero:"fail at once" doc:"how long"`
}

// Log says what is logged.
type Log struct {
	Level  string `key:"level" default:"info" oneof:"debug info warn error" live:"true" doc:"least level logged"`
	Format string `key:"format" default:"json" oneof:"json text" doc:"of a line"`
}

// Telemetry says what is reported.
type Telemetry struct {
	OTLPEndpoint string  `key:"otlp_endpoint" doc:"where traces go, by OTLP over HTTP: http(s)://host:port; empty: nowhere"`
	TraceRatio   float64 `key:"trace_ratio" default:"0.01" zero:"none" doc:"share of publishes that is traced"`
	TenantLabels int     `key:"tenant_labels" default:"100" doc:"tenants with metrics of their own"`
}

package engine

import (
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"time"
	"unicode/utf8"

	"github.com/yaza-dev/pulse/actors/mailbox"
	"github.com/yaza-dev/pulse/actors/message"
	"github.com/yaza-dev/pulse/auth"
	"github.com/yaza-dev/pulse/backpressure"
	"github.com/yaza-dev/pulse/codec"
	"github.com/yaza-dev/pulse/transport"
)

// exchange is one request of a client over HTTP. It passes the same grants, rooms
// and limits as a frame, and is answered with the same objects.
type exchange struct {
	e        *Engine
	r        *http.Request
	identity *auth.Identity
	codec    codec.Codec
}

// serveHTTP adds what clients may ask over HTTP.
func (e *Engine) serveHTTP(mux *http.ServeMux) {
	mux.HandleFunc("POST /v1/rooms/{room}/publish", serve(e, "publish", (*exchange).publish))
	mux.HandleFunc("POST /v1/rooms/{room}/commands/{name}", serve(e, "command", (*exchange).command))
	mux.HandleFunc("GET /v1/rooms/{room}/history", serve(e, "history", (*exchange).history))
	mux.HandleFunc("GET /v1/rooms/{room}/presence", serve(e, "presence", (*exchange).presence))
	mux.HandleFunc("POST /v1/session/token", e.renewSession)
	mux.HandleFunc("GET /v1/negotiate", e.negotiate)
	mux.HandleFunc("OPTIONS /v1/", e.preflight)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { transport.Refuse(w, errNoEndpoint) })
}

// serve makes a handler of what a request of type t asks for. Its body, or its
// query where it has no body, is the frame.
func serve[R codec.Request](e *Engine, t string, do func(*exchange, context.Context, R) (codec.Result, *codec.Error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		x := &exchange{e: e, r: r}
		x.run(w, func(ctx context.Context) (codec.Result, *codec.Error) {
			req, err := x.read(w, t)
			if err == nil {
				err = x.identify(ctx)
			}
			if err != nil {
				return nil, err
			}
			return do(x, ctx, req.(R))
		})
	}
}

// run answers the request by what do comes to, unless it is refused before.
func (x *exchange) run(w http.ResponseWriter, do func(context.Context) (codec.Result, *codec.Error)) {
	ctx, cancel := context.WithCancel(x.r.Context())
	defer cancel()
	defer context.AfterFunc(x.e.working, cancel)()
	var ok codec.Result
	err := errLeaving
	if x.e.guests.enter() {
		defer x.e.guests.left()
		err = x.admit(w)
	}
	if err == nil {
		ok, err = do(ctx)
	}
	x.answer(w, ok, err)
}

// admit looks at what does not need the body.
func (x *exchange) admit(w http.ResponseWriter) *codec.Error {
	w.Header().Set("Cache-Control", "no-store")
	if err := x.e.admission.judge(x.r); err != nil {
		return err
	}
	shareWith(w, x.r)
	return nil
}

var errNoEndpoint = codec.NewError(codec.CodeNotFound, "no such endpoint, or not by this method")

var errMalformed = codec.NewError(codec.CodeBadRequest, "the request is malformed")

// read reads the frame of type t, and says what the answer is in.
func (x *exchange) read(w http.ResponseWriter, t string) (codec.Request, *codec.Error) {
	var body []byte
	var in codec.Codec
	var refusal *codec.Error
	if reads(x.r) {
		x.codec, in = accepted(x.r), codec.JSON
		body, refusal = queryBody(x.r.URL.RawQuery)
	} else {
		body, refusal = x.readBody(w)
		in = x.codec
	}
	if refusal != nil {
		return nil, refusal
	}
	req, err := codec.DecodeBody(in, t, x.r.PathValue("room"), x.r.PathValue("name"), body)
	if err != nil {
		return nil, errMalformed
	}
	if fault, ok := req.(*codec.Fault); ok {
		return nil, fault.Err
	}
	return req, nil
}

// readBody reads a body, whose codec the answer is in too.
func (x *exchange) readBody(w http.ResponseWriter) ([]byte, *codec.Error) {
	kind, _, err := mime.ParseMediaType(x.r.Header.Get("Content-Type"))
	switch {
	case len(x.r.Header["Content-Type"]) > 1 || x.r.Header.Get("Content-Encoding") != "":
		return nil, codec.NewError(codec.CodeBadRequest, "the body must be of one type, and as it is")
	case err == nil && kind == "application/json":
	case err == nil && kind == "application/msgpack":
		x.codec = codec.Msgpack
	default:
		return nil, codec.NewError(codec.CodeBadRequest, "the body must be application/json or application/msgpack")
	}
	limit := int64(x.e.cfg.Limits.MaxMessageBytes)
	var body []byte
	if x.r.ContentLength <= limit {
		if body, err = io.ReadAll(io.LimitReader(x.r.Body, limit+1)); err != nil {
			return nil, errMalformed
		}
	}
	if max(x.r.ContentLength, int64(len(body))) > limit {
		w.Header().Set("Connection", "close") // else the server would wait for the rest
		return nil, codec.NewError(codec.CodeTooLarge, "the body is larger than a message may be")
	}
	return body, nil
}

// identify asks who the client is.
func (x *exchange) identify(ctx context.Context) *codec.Error {
	ctx, cancel := context.WithTimeout(ctx, x.e.cfg.Limits.HandshakeTimeout)
	defer cancel()
	cr := x.e.credentials(x.r)
	if cr.Source == auth.None {
		return codec.NewError(codec.CodeUnauthenticated, "credentials are missing")
	}
	var err error
	if x.identity, err = x.e.identify(ctx, cr); err != nil {
		return unidentified(err)
	}
	return nil
}

func (x *exchange) answer(w http.ResponseWriter, ok codec.Result, err *codec.Error) {
	if err != nil && x.codec == codec.JSON {
		transport.Refuse(w, err)
		return
	}
	status := http.StatusOK
	if err != nil {
		status = err.Code.HTTPStatus()
		transport.RetryAfter(w, err)
	}
	w.Header().Set("Content-Type", "application/"+x.codec.String())
	w.WriteHeader(status)
	// A client that is gone is all that can fail here.
	_, _ = w.Write(codec.AppendAnswer(nil, x.codec, ok, err))
}

// reads reports whether a request, which is a GET, a HEAD or a POST, changes nothing and
// has no body.
func reads(r *http.Request) bool { return r.Method != http.MethodPost }

// accepted is the codec that a request without a body is answered in.
func accepted(r *http.Request) codec.Codec {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Accept")); err == nil && kind == "application/msgpack" {
		return codec.Msgpack
	}
	return codec.JSON
}

var integer = regexp.MustCompile(`^-?[0-9]+$`)

// queryBody is a query as the JSON of the frame that it stands for; malformed: it
// cannot be read, or names something twice.
func queryBody(query string) ([]byte, *codec.Error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, errMalformed
	}
	body := make(map[string]json.RawMessage, len(values))
	for name, list := range values {
		text := list[0]
		if len(list) != 1 || !utf8.ValidString(name) || !utf8.ValidString(text) {
			return nil, errMalformed
		}
		switch {
		case name == "reverse" && (text == "true" || text == "false"), (name == "offset" || name == "limit") && integer.MatchString(text):
			body[name] = json.RawMessage(text)
		default:
			body[name], _ = json.Marshal(text) // a text has no error
		}
	}
	b, _ := json.Marshal(body)
	return b, nil
}

// asks finds the policy of a room of which the client asks what takes a right; name is
// that of an event or a command.
func (x *exchange) asks(ctx context.Context, right auth.Right, room, name string) (*message.Policy, *codec.Error) {
	kind, err := x.e.kinds.For(x.identity.Grants, right, room)
	if err == nil {
		err = x.authorize(ctx, auth.Access{Right: right, Room: room, Name: name})
	}
	return kind, err
}

// publish is an event of a client without a session; its kind asks for the right
// alone.
func (x *exchange) publish(ctx context.Context, r *codec.Publish) (codec.Result, *codec.Error) {
	refuse := func(err *codec.Error) (codec.Result, *codec.Error) {
		if kind := x.e.kinds.Of(codec.RoomKind(r.Room)); kind != nil {
			kind.Meter.Published(nil, err)
		}
		return nil, err
	}
	kind, err := x.asks(ctx, auth.Publish, r.Room, r.Event)
	if err != nil {
		return refuse(err)
	}
	policy := kind.Event(r.Event)
	if policy == nil {
		return refuse(message.ErrNoEvent)
	}
	w := make(waiter, 1)
	topic := codec.Topic{Tenant: x.identity.Tenant, Room: r.Room}
	p := &message.Publish{
		By: w, Topic: topic, Event: r.Event, Kind: kind, Policy: policy, Data: r.Data, Subject: x.identity.Subject, DedupKey: r.DedupKey,
	}
	if r.HasTTL {
		if r.TTL <= 0 {
			return refuse(message.ErrExpired)
		}
		p.Expires = time.Now().Add(r.TTL)
	}
	if err := x.within(r); err != nil {
		return refuse(err)
	}
	p.Trace = x.e.tracing.begin(p)
	if err := x.post(topic, kind, policy.Lane, p.Item(x.e.coalesce, x.e.pool.Now())); err != nil {
		p.Refused(err)
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, publishTime)
	defer cancel()
	select {
	case a := <-w:
		if a.err != nil {
			return nil, a.err
		}
		ok := codec.PublishResult(a.result)
		return &ok, nil
	case <-ctx.Done():
		return nil, message.Unavailable(codec.ScopeRoom) // not known to be published
	}
}

// publishTime is how long a client waits to be told what became of its event.
const publishTime = 10 * time.Second

var errLeaving = codec.Retry(codec.CodeDraining, codec.ScopeNode, time.Second, "the node is leaving")

// post puts a message into a room's mailbox.
func (x *exchange) post(topic codec.Topic, kind *message.Policy, lane backpressure.Lane, it mailbox.Item) *codec.Error {
	switch o, err := x.e.post(topic, kind, lane, it); {
	case err != nil:
		return errLeaving
	case !o.Took():
		return message.Refusal(o, codec.ScopeRoom)
	}
	return nil
}

// negotiate tells what the node speaks; it asks for no credentials.
func (e *Engine) negotiate(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if err := e.admission.judge(r); err != nil {
		transport.Refuse(w, err)
		return
	}
	shareWith(w, r)
	codecs := []string{codec.JSON.String(), codec.Msgpack.String()}
	answer(w, http.StatusOK, map[string]any{
		"versions":   []string{"pulse.v1"},
		"transports": []map[string]any{{"name": "websocket", "path": "/v1/ws", "codecs": codecs}},
		"limits": map[string]any{
			"max_message_bytes": e.cfg.Limits.MaxMessageBytes,
			"max_frame_bytes":   e.cfg.Limits.MaxFrameBytes,
			"max_rooms":         e.cfg.Limits.SessionMaxRooms,
		},
	})
}

// One session over WebSocket, in any number of rooms, kept through lost
// connections: it reconnects with backoff and joins each room again from the
// position of the last event that was taken. It knows nothing of the page.

// What a close code says about coming back; see the protocol, "Liveness and closing".
const FINAL = new Set([1000, 1002, 1003, 1007, 1008, 1009, 1010]);
const isFinal = (code) => FINAL.has(code) || (code >= 4400 && code < 4500);
const UNAUTHENTICATED = 4401;
const TAKEN_OVER = 4409;
const NO_WORD = 1006; // the connection went without a close frame

const BACKOFF_BASE = 500;
const BACKOFF_CAP = 20_000;
const BACKOFF_RESET = 10_000;
const LATE = 1000; // a timer as late as this was throttled or slept

/** Full jitter: any moment between now and the bound that grows with the attempts. */
const backoff = (attempt) => Math.random() * Math.min(BACKOFF_CAP, BACKOFF_BASE * 2 ** attempt);

/** A moment within the range [low, high] that the server gave. */
const within = ([low, high]) => low + Math.random() * (high - low);

export class Client {
  #url; #token; #visible; #pace; #tell;
  #socket = null;
  #resume = null;      // of the session; in memory only, so that a duplicated tab has none
  #rooms = new Map();  // by name: {position, presence}, each null until it is known
  #requests = new Map();
  #nextId = 1;
  #attempt = 0;
  #hint = null;        // when to come back, as the server said
  #timers = {};
  #welcome = null;
  #ended = false;
  #renewed = false;    // a fresh token was asked for since the last welcome

  /**
   * token() resolves with credentials, visible() when the page is in sight, and
   * pace(size) may hold the reading of messages up. tell(what, ...) hears:
   *
   *	status (state, detail)            connecting, live, waiting, closed
   *	welcome (frame)
   *	joined (room, result, from)       from: the position that was asked for
   *	refused (room, err), left (room, reason)
   *	event (frame), reset (frame), error (frame), renewed (exp_ms)
   *	presence (room, {members, count, join, leave})   members: null where only the count is known
   */
  constructor({ url, token, tell, visible = async () => {}, pace = () => {} }) {
    this.#url = url;
    this.#token = token;
    this.#tell = tell;
    this.#visible = visible;
    this.#pace = pace;
  }

  connect() {
    clearTimeout(this.#timers.retry);
    this.#tell("status", "connecting", this.#attempt > 0 ? `attempt ${this.#attempt + 1}` : "");
    this.#open().catch((error) => this.#lost({ code: NO_WORD, reason: error.message }));
  }

  join(name) {
    if (this.#rooms.has(name)) return;
    this.#rooms.set(name, { position: null, presence: null });
    if (this.#welcome) this.#join(name);
  }

  /** Publishes; resolves with the result, rejects with what the server, or a lost connection, said. */
  publish(room, event, data) {
    return this.#request({ t: "publish", room, event, data });
  }

  /** Publishes without asking what became of it. */
  send(room, event, data) {
    if (this.#welcome) this.#send({ t: "publish", room, event, data });
  }

  /** Drops the connection without a goodbye to the session, and stays away for a while. */
  cut(awayMs) {
    this.#hint = [awayMs, awayMs];
    this.#lost({ code: NO_WORD, reason: "" });
  }

  /** Ends the session for good. */
  close() {
    this.#ended = true;
    this.#drop(1000);
  }

  async #open() {
    const token = await this.#token();
    if (this.#ended) return;
    const socket = new WebSocket(this.#url, "pulse.v1.json");
    this.#socket = socket;
    const mine = (handle) => (e) => { if (this.#socket === socket) handle(e); };
    socket.onopen = mine(() => {
      const rooms = [...this.#rooms].map(([room, { position }]) => ({ room, presence: true, ...position }));
      const hello = { t: "hello", token, client: "pulse-demo", rooms };
      if (this.#resume) hello.resume = this.#resume;
      this.#send(hello);
    });
    socket.onmessage = mine((e) => {
      this.#pace(e.data.length);
      this.#alive();
      this.#take(JSON.parse(e.data));
    });
    socket.onclose = mine((e) => this.#lost(e));
  }

  #take(frame) {
    switch (frame.t) {
      case "welcome": return this.#welcomed(frame);
      case "reply": return this.#answered(frame);
      case "event":
        if (frame.offset !== undefined) this.#moveTo(frame);
        return this.#tell("event", frame);
      case "reset":
        this.#moveTo(frame);
        return this.#tell("reset", frame);
      case "presence": return this.#present(frame);
      case "position": return this.#moveTo(frame);
      case "ping": return this.#send({ t: "pong" });
      case "expiring": return this.#renew();
      case "drain":
        this.#hint = frame.reconnect_ms;
        return this.#lost({ code: 1012, reason: "" });
      case "left":
        this.#rooms.delete(frame.room);
        return this.#tell("left", frame.room, frame.reason);
      case "error": return this.#tell("error", frame);
    }
  }

  #welcomed(frame) {
    this.#welcome = frame;
    this.#resume = frame.resume ?? null;
    this.#renewed = false;
    this.#timers.stable = setTimeout(() => { this.#attempt = 0; }, BACKOFF_RESET);
    this.#alive();
    this.#tell("welcome", frame);
    this.#tell("status", "live", frame.subject);
    for (const { room, ok, err } of frame.rooms) this.#joined(room, ok, err);
    // Rooms that were named while the hello was under way.
    for (const name of this.#rooms.keys()) if (!frame.rooms.some(({ room }) => room === name)) this.#join(name);
  }

  #join(name) {
    const room = this.#rooms.get(name);
    if (!room || !this.#welcome) return;
    this.#request({ t: "join", room: name, presence: true, ...room.position })
      .then((ok) => this.#joined(name, ok), (err) => { if (err.code) this.#joined(name, null, err); });
  }

  #joined(name, ok, err) {
    const room = this.#rooms.get(name);
    if (!room) return;
    if (err?.retry_after_ms !== undefined) {
      setTimeout(() => this.#join(name), err.retry_after_ms);
      return;
    }
    if (err) {
      this.#rooms.delete(name);
      return this.#tell("refused", name, err);
    }
    const from = room.position;
    this.#moveTo(ok);
    this.#tell("joined", name, ok, from);
    if (ok.pe !== undefined) this.#rebase(name, room, ok);
  }

  /** A whole list of members, or their number alone, takes the place of what was known. */
  #rebase(name, room, { pe, seq, members, count }) {
    room.presence = { pe, seq, count, members: members ? new Set(members.map((m) => m.subject)) : null };
    this.#tellPresence(name, room.presence, [], []);
  }

  #present(frame) {
    const room = this.#rooms.get(frame.room);
    if (!room) return;
    const { join = [], update = [], leave = [] } = frame;
    if (frame.full || frame.count !== undefined) return this.#rebase(frame.room, room, frame);
    const known = room.presence;
    if (known?.pe !== frame.pe || known.seq !== frame.prev) return this.#join(frame.room); // whose result has all
    known.seq = frame.seq;
    known.count += join.length - leave.length;
    for (const { subject } of [...join, ...update]) known.members?.add(subject);
    for (const subject of leave) known.members?.delete(subject);
    this.#tellPresence(frame.room, known, join.map((m) => m.subject), leave);
  }

  #tellPresence(name, { members, count }, join, leave) {
    this.#tell("presence", name, { members: members && [...members].sort(), count, join, leave });
  }

  /** New credentials in time, without a gap. Where that fails, 4401 will come. */
  async #renew() {
    try {
      const { exp_ms, resume } = await this.#request({ t: "token", token: await this.#token() });
      this.#resume = resume ?? this.#resume;
      this.#tell("renewed", exp_ms);
    } catch { /* see above */ }
  }

  #moveTo({ room, epoch, offset }) {
    const known = this.#rooms.get(room);
    if (known) known.position = { epoch, offset };
  }

  #request(frame) {
    if (!this.#welcome) return Promise.reject(new Error("not connected"));
    const id = this.#nextId++;
    this.#send({ ...frame, id });
    return new Promise((resolve, reject) => this.#requests.set(id, { resolve, reject }));
  }

  #answered({ id, ok, err }) {
    const request = this.#requests.get(id);
    this.#requests.delete(id);
    if (err) request?.reject(Object.assign(new Error(err.code), err));
    else request?.resolve(ok);
  }

  #send(frame) {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(frame));
  }

  /** Something came: the connection has until the next ping and its answer are overdue. */
  #alive() {
    if (this.#welcome) this.#watch(this.#welcome.ping_ms + this.#welcome.pong_ms);
  }

  #watch(ms) {
    clearTimeout(this.#timers.silence);
    const due = Date.now() + ms;
    this.#timers.silence = setTimeout(() => {
      if (Date.now() - due > LATE) this.#watch(this.#welcome.pong_ms);
      else this.#lost({ code: 4500, reason: "silence" });
    }, ms);
  }

  #drop(code) {
    const socket = this.#socket;
    this.#socket = null;
    this.#welcome = null;
    for (const timer of Object.values(this.#timers)) clearTimeout(timer);
    for (const { reject } of this.#requests.values()) reject(new Error("connection lost"));
    this.#requests.clear();
    // Without a code the session lives on; 1000 ends it.
    if (code) socket?.close(code);
    else socket?.close();
  }

  #lost({ code, reason }) {
    if (this.#ended) return;
    this.#drop();
    if (code === TAKEN_OVER) {
      this.#resume = null; // that session is another's now; a page in sight starts a new one
      this.#tell("status", "waiting", { code });
      this.#visible().then(() => { if (!this.#ended) this.connect(); });
      return;
    }
    const fresh = code === UNAUTHENTICATED && !this.#renewed; // every connection asks for a token anew
    this.#renewed ||= fresh;
    if (isFinal(code) && !fresh) {
      this.#ended = true;
      this.#tell("status", "closed", `${code} ${reason}`.trim());
      return;
    }
    const range = /^(\d+)-(\d+)$/.exec(reason);
    const hint = fresh ? [0, 0] : range ? [Number(range[1]), Number(range[2])] : this.#hint;
    this.#hint = null;
    const wait = hint ? within(hint) : backoff(this.#attempt);
    this.#attempt++;
    this.#tell("status", "waiting", { code, due: Date.now() + wait, attempt: this.#attempt });
    this.#timers.retry = setTimeout(() => this.connect(), wait);
  }
}

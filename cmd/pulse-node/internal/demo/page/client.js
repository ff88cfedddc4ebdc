// One session in one room over WebSocket, kept through lost connections: it
// reconnects with backoff and joins again from the position of the last event
// that was taken. It knows nothing of the page.

// What a close code says about coming back; see the protocol, "Liveness and closing".
const FINAL = new Set([1000, 1002, 1003, 1007, 1008, 1009, 1010]);
const isFinal = (code) => FINAL.has(code) || (code >= 4400 && code < 4500);

const BACKOFF_BASE = 500;
const BACKOFF_CAP = 20_000;
const BACKOFF_RESET = 10_000;

/** Full jitter: any moment between now and the bound that grows with the attempts. */
const backoff = (attempt) => Math.random() * Math.min(BACKOFF_CAP, BACKOFF_BASE * 2 ** attempt);

/** A moment within the range [low, high] that the server gave. */
const within = ([low, high]) => low + Math.random() * (high - low);

export class Client {
  #url; #token; #room; #listener;
  #socket = null;
  #resume = null;      // of the session, in memory only
  #position = null;    // {epoch, offset} of the last event taken
  #requests = new Map();
  #nextId = 1;
  #attempt = 0;
  #hint = null;        // when to come back, as the server said
  #timers = {};
  #welcome = null;
  #ended = false;
  #renewed = false;    // a fresh token was asked for since the last welcome

  /**
   * listener has: status(state, detail), welcome(frame), joined(result, from),
   * event(frame), reset(frame), position(position).
   */
  constructor({ url, token, room, listener }) {
    this.#url = url;
    this.#token = token;
    this.#room = room;
    this.#listener = listener;
  }

  connect() {
    clearTimeout(this.#timers.retry);
    this.#listener.status("connecting", this.#attempt > 0 ? `attempt ${this.#attempt + 1}` : "");
    this.#open().catch((error) => this.#lost({ code: 1006, reason: error.message }));
  }

  /** Publishes; resolves with the result, rejects with what the server, or a lost connection, said. */
  publish(event, data) {
    return this.#request({ t: "publish", room: this.#room, event, data });
  }

  /** Drops the connection without a goodbye to the session, and stays away for a while. */
  cut(awayMs) {
    this.#hint = [awayMs, awayMs];
    this.#lost({ code: 1006, reason: "cut here" });
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
      const room = { room: this.#room, ...this.#position };
      const hello = { t: "hello", token, client: "pulse-demo", rooms: [room] };
      if (this.#resume) hello.resume = this.#resume;
      socket.send(JSON.stringify(hello));
    });
    socket.onmessage = mine((e) => { this.#alive(); this.#take(JSON.parse(e.data)); });
    socket.onclose = mine((e) => this.#lost(e));
  }

  #take(frame) {
    switch (frame.t) {
      case "welcome": return this.#welcomed(frame);
      case "reply": return this.#answered(frame);
      case "event": return this.#event(frame);
      case "reset":
        this.#moveTo(frame);
        return this.#listener.reset(frame);
      case "position": return this.#moveTo(frame);
      case "ping": return this.#send({ t: "pong" });
      case "drain":
        this.#hint = frame.reconnect_ms;
        return this.#lost({ code: 1012, reason: "" });
      case "left":
        this.#listener.status("closed", `left the room: ${frame.reason}`);
        return this.close();
    }
  }

  #welcomed(frame) {
    const from = this.#position;
    this.#welcome = frame;
    this.#resume = frame.resume ?? null;
    this.#renewed = false;
    this.#timers.stable = setTimeout(() => { this.#attempt = 0; }, BACKOFF_RESET);
    this.#alive();
    this.#listener.welcome(frame);
    const [{ ok, err }] = frame.rooms;
    if (err) {
      this.#listener.status("closed", `the room says ${err.code}`);
      return this.close();
    }
    this.#listener.status("live", `${frame.subject} in ${this.#room}`);
    this.#moveTo(ok);
    this.#listener.joined(ok, from);
  }

  #event(frame) {
    if (frame.offset !== undefined) this.#moveTo(frame);
    this.#listener.event(frame);
  }

  #moveTo({ epoch, offset }) {
    this.#position = { epoch, offset };
    this.#listener.position(this.#position);
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
    if (err) request?.reject(new Error(err.code));
    else request?.resolve(ok);
  }

  #send(frame) {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(frame));
  }

  /** Something came: the connection has until the next ping and its answer are overdue. */
  #alive() {
    clearTimeout(this.#timers.silence);
    if (!this.#welcome) return;
    const { ping_ms, pong_ms } = this.#welcome;
    this.#timers.silence = setTimeout(() => this.#lost({ code: 4500, reason: "silence" }), ping_ms + pong_ms);
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
    const fresh = code === 4401 && !this.#renewed; // the token is asked for again with every connection
    this.#renewed = code === 4401;
    if (isFinal(code) && !fresh) {
      this.#ended = true;
      this.#listener.status("closed", `closed with ${code} ${reason}`.trim());
      return;
    }
    const range = /^(\d+)-(\d+)$/.exec(reason);
    const hint = range ? [Number(range[1]), Number(range[2])] : this.#hint;
    this.#hint = null;
    const wait = hint ? within(hint) : backoff(this.#attempt);
    this.#attempt++;
    const due = Date.now() + wait;
    this.#listener.status("waiting", { due, attempt: this.#attempt });
    this.#timers.retry = setTimeout(() => this.connect(), wait);
  }
}

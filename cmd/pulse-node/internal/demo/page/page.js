// The demo page: what the client tells is shown, what the visitor does is told
// to the client, which runs in a worker. Text from the network is only ever set
// as text.

import { Cursors } from "./cursors.js";
import { Room, row } from "./room.js";

const AWAY_MS = 4000; // how long a cut lasts: time to write in the other window
const BURST = [400, 32 << 10]; // more than the buffers of two kernels and the room's history hold

const $ = (id) => document.getElementById(id);
const asked = new URLSearchParams(location.search);
const rooms = new Map(); // by name
let worker = null;
let subject = "";
let room = null;         // the one in view
let session = "";
let welcomed = 0;        // the server's clock then: events older than that are replayed ones
let counts = {};         // of the connection's life, as shown
let ticking = 0;         // timer of the status line
let waving = 0;
const own = new Map();   // by nonce: rows of own messages whose event has not come

// Shared memory, with which a reader can be stopped and woken, is for pages that
// are alone in their process; see demo.go.
const shared = globalThis.crossOriginIsolated ? new SharedArrayBuffer(4) : null;

const call = (method, ...args) => worker?.postMessage([method, ...args]);
const note = (text) => row($("events"), "note", ["what", text]);
const cursors = new Cursors($("canvas"), (data) => { if (room) call("send", room.name, "cursor", data); });

function showCounts() {
  $("received").textContent = counts.received;
  $("resets").textContent = counts.resets;
  $("replayed").textContent = counts.replayed;
  $("updates").textContent = cursors.received;
  $("replaced").textContent = cursors.replaced;
}

function showStatus(state, detail) {
  clearInterval(ticking);
  const words = { live: "connected", connecting: "connecting", waiting: "connection lost", closed: "closed" };
  const show = (more) => { $("status").textContent = more ? `${words[state]} · ${more}` : words[state]; };
  $("status").dataset.state = state;
  if (state === "waiting") {
    note(detail.code === 4409 ? "4409: another connection took this session over" : `connection lost (${detail.code})`);
    const tick = () => show(detail.due
      ? `attempt ${detail.attempt} in ${(Math.max(0, detail.due - Date.now()) / 1000).toFixed(1)} s` : "until this page is in sight");
    tick();
    ticking = setInterval(tick, 100);
  } else {
    show(detail);
  }
  const live = state === "live";
  for (const id of ["text", "send", "wave", "burst"]) $(id).disabled = !live;
  $("slow").disabled = !live || !shared;
  $("cut").disabled = !live && state !== "waiting";
  $("cut").textContent = state === "waiting" ? "Reconnect now" : "Kill connection";
  $("cut").dataset.state = state;
}

function showPosition({ epoch, offset }) {
  $("position").textContent = `${epoch}:${offset}`;
}

function open(name) {
  let wanted = rooms.get(name);
  if (!wanted) {
    wanted = new Room(name, subject, () => view(wanted));
    rooms.set(name, wanted);
    $("rooms").append(wanted.tab);
  }
  call("join", name);
  view(wanted);
}

function view(wanted) {
  room?.hide();
  room = wanted;
  room.show($("messages"), $("members"), $("count"));
  cursors.clear();
  if (room.position) showPosition(room.position);
}

const told = {
  status: showStatus,

  welcome(frame) {
    const kept = session === frame.session;
    if (session) {
      $("resumed").textContent = kept ? "session kept" : "new session";
      note(kept ? "resumed: the session was kept" : "came back as a new session");
    }
    session = frame.session;
    welcomed = frame.now_ms;
    $("session").textContent = frame.resumed ? `${session} (resumed)` : session;
    counts.replayed = 0;
    cursors.clear();
    showCounts();
  },

  joined(name, result, from) {
    rooms.get(name).position = result;
    if (name === room.name) showPosition(result);
    if (result.reset) {
      counts.resets++;
      showCounts();
      note(`${name}: reset (${result.reset}): history goes on at ${result.epoch}:${result.offset}`);
    } else if (from) {
      note(`${name}: joined again from ${from.epoch}:${from.offset}`);
    } else {
      note(`${name}: joined at ${result.epoch}:${result.offset}`);
    }
    if (!from) $("text").focus();
  },

  refused(name, err) { note(`${name}: ${err.code}`); },
  left(name, reason) { note(`${name}: left (${reason}); Join brings you back`); },
  renewed() { note("credentials renewed"); },
  error(frame) { note(`${frame.re ?? "error"}: ${frame.code}`); },

  presence(name, change) {
    rooms.get(name)?.present(change);
    for (const who of change.join) note(`${name}: ${who} came`);
    for (const who of change.leave) note(`${name}: ${who} left`);
  },

  event(frame) {
    const at = rooms.get(frame.room);
    counts.received++;
    $("delay").textContent = `${(Math.max(0, Date.now() - frame.ts) / 1000).toFixed(1)} s before it came`;
    if (frame.event === "cursor") {
      if (at === room && frame.session !== session) cursors.take(frame);
      return showCounts();
    }
    const replayed = frame.offset !== undefined && frame.ts < welcomed;
    if (replayed) counts.replayed++;
    showCounts();
    if (frame.offset !== undefined) {
      at.position = frame;
      if (at === room) showPosition(frame);
    }
    const what = typeof frame.data?.text === "string" ? frame.data.text : JSON.stringify(frame.data).slice(0, 80);
    row($("events"), replayed ? "replayed" : "",
      ["offset", frame.offset ?? "–"], ["name", frame.event], ["from", frame.from ?? "server"],
      ["what", replayed ? `${what} (missed, replayed)` : what]);
    if (frame.event !== "message") return;
    const shown = frame.session === session && own.get(frame.data?.nonce);
    if (shown) {
      shown.classList.remove("pending");
      own.delete(frame.data.nonce);
    } else {
      at.say(frame.from, what, frame.from === subject ? "mine" : "");
    }
  },

  reset(frame) {
    const at = rooms.get(frame.room);
    at.position = frame;
    if (at === room) showPosition(frame);
    counts.resets++;
    showCounts();
    note(`${frame.room}: reset (${frame.reason}): history goes on at ${frame.epoch}:${frame.offset}`);
  },

  published(nonce) { own.get(nonce)?.classList.remove("pending"); }, // the event itself comes before or after
  unpublished(nonce, why) {
    const li = own.get(nonce);
    if (li) li.title = `not confirmed: ${why}`;
  },
  burst(count, refused) {
    $("burst").disabled = false;
    note(`sent ${count - refused} of ${count}${refused ? `, ${refused} refused` : ""}`);
  },
};

function start() {
  if (worker) {
    call("close");
    worker.terminate();
  }
  for (const id of ["messages", "members", "events", "rooms"]) $(id).replaceChildren();
  own.clear();
  rooms.clear();
  [room, session, counts] = [null, "", { received: 0, resets: 0, replayed: 0 }];
  document.title = `${subject} · Pulse demo`;
  const url = new URL("v1/ws", location.href);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  const tokens = new URL(`demo/token/${encodeURIComponent(subject)}`, location.href);
  if (asked.has("ttl")) tokens.searchParams.set("ttl", asked.get("ttl")); // to see credentials end
  worker = new Worker("worker.js", { type: "module" });
  worker.onmessage = ({ data: [what, ...args] }) => told[what](...args);
  call("visible", document.visibilityState === "visible");
  call("start", { url: url.href, tokens: tokens.href, shared });
}

$("enter").addEventListener("submit", (e) => {
  e.preventDefault();
  if (subject !== $("subject").value || ["idle", "closed"].includes($("status").dataset.state)) {
    subject = $("subject").value;
    start();
  }
  open($("room").value);
});

$("compose").addEventListener("submit", (e) => {
  e.preventDefault();
  const text = $("text").value.trim();
  if (!text) return;
  $("text").value = "";
  const nonce = `${session}-${performance.now()}`;
  own.set(nonce, room.say(subject, text, "mine pending"));
  call("publish", room.name, "message", { text, nonce }, nonce);
});

$("cut").addEventListener("click", () => {
  if ($("cut").dataset.state === "waiting") call("connect");
  else call("cut", AWAY_MS);
});

$("burst").addEventListener("click", () => {
  $("burst").disabled = true;
  call("burst", room.name, ...BURST);
});

$("slow").addEventListener("change", () => {
  const flag = new Int32Array(shared);
  Atomics.store(flag, 0, $("slow").checked ? 1 : 0);
  Atomics.notify(flag, 0);
});

$("wave").addEventListener("change", () => {
  clearInterval(waving);
  if (!$("wave").checked) return;
  waving = setInterval(() => {
    const turn = performance.now() / 700;
    cursors.move(0.5 + 0.4 * Math.cos(turn), 0.5 + 0.4 * Math.sin(turn));
  }, 40);
});

document.addEventListener("visibilitychange", () => call("visible", document.visibilityState === "visible"));

// A page opened as ?as=bob&room=… starts by itself.
if (asked.has("room")) $("room").value = asked.get("room");
if (asked.has("as")) {
  $("subject").value = asked.get("as");
  $("enter").requestSubmit();
}

// The demo page: what the client tells is shown, what the visitor does is told
// to the client. Text from the network is only ever set as text.

import { Client } from "./client.js";

const AWAY_MS = 4000; // how long a cut lasts at least: time to write in the other window
const SHOWN = 500;    // rows kept on the page

const $ = (id) => document.getElementById(id);
let client = null;
let subject = "";
let joinedAt = 0;           // the server's clock at the last welcome: older events are replayed ones
let ticking = 0;
const own = new Map();      // by nonce: rows of own messages whose event has not come

function row(list, className, ...parts) {
  const follow = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
  const li = document.createElement("li");
  li.className = className;
  for (const [name, text] of parts) {
    const span = document.createElement("span");
    span.className = name;
    span.textContent = text;
    li.append(span);
  }
  list.append(li);
  while (list.children.length > SHOWN) list.firstChild.remove();
  if (follow) list.scrollTop = list.scrollHeight;
  return li;
}

const note = (list, text) => row(list, "note", ["what", text]);

function showStatus(state, detail) {
  clearInterval(ticking);
  const words = { live: "connected", connecting: "connecting", waiting: "connection lost", closed: "closed" };
  const show = (more) => { $("status").textContent = more ? `${words[state]} · ${more}` : words[state]; };
  $("status").dataset.state = state;
  if (state === "waiting") {
    const tick = () => {
      const left = Math.max(0, detail.due - Date.now());
      show(`attempt ${detail.attempt} in ${(left / 1000).toFixed(1)} s`);
    };
    tick();
    ticking = setInterval(tick, 100);
  } else {
    show(detail);
  }
  const live = state === "live";
  $("text").disabled = $("send").disabled = !live;
  $("cut").disabled = !live && state !== "waiting";
  $("cut").textContent = state === "waiting" ? "Reconnect now" : "Cut connection";
  $("cut").dataset.state = state;
}

const listener = {
  status: showStatus,

  welcome(frame) {
    joinedAt = frame.now_ms;
    $("session").textContent = `${frame.session}${frame.resumed ? " (resumed)" : ""}`;
  },

  position({ epoch, offset }) {
    $("position").textContent = `${epoch}:${offset}`;
  },

  joined(result, from) {
    if (result.reset) {
      note($("events"), `reset (${result.reset}): history goes on at ${result.epoch}:${result.offset}`);
    } else if (from) {
      note($("events"), `joined again from ${from.epoch}:${from.offset}`);
    } else {
      note($("events"), `joined at ${result.epoch}:${result.offset}`);
    }
    if (!from) $("text").focus();
  },

  event(frame) {
    const replayed = frame.offset !== undefined && frame.ts < joinedAt;
    const what = typeof frame.data?.text === "string" ? frame.data.text : JSON.stringify(frame.data);
    row($("events"), replayed ? "replayed" : "",
      ["offset", frame.offset ?? "–"], ["name", frame.event], ["from", frame.from ?? "server"],
      ["what", replayed ? `${what} (missed, replayed)` : what]);
    if (frame.event !== "message") return;
    const shown = frame.from === subject && own.get(frame.data?.nonce);
    if (shown) {
      shown.classList.remove("pending");
      own.delete(frame.data.nonce);
    } else {
      row($("messages"), frame.from === subject ? "mine" : "", ["from", frame.from ?? "server"], ["text", what]);
    }
  },

  reset(frame) {
    note($("events"), `reset (${frame.reason}): history goes on at ${frame.epoch}:${frame.offset}`);
  },
};

async function token() {
  const answer = await fetch(`demo/token/${encodeURIComponent(subject)}`);
  if (!answer.ok) throw new Error(`no token: ${answer.status}`);
  return (await answer.json()).token;
}

$("enter").addEventListener("submit", (e) => {
  e.preventDefault();
  client?.close();
  for (const id of ["messages", "events"]) $(id).replaceChildren();
  own.clear();
  subject = $("subject").value;
  document.title = `${subject} · Pulse demo`;
  const url = new URL("v1/ws", location.href);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  client = new Client({ url, token, room: $("room").value, listener });
  client.connect();
});

$("compose").addEventListener("submit", async (e) => {
  e.preventDefault();
  const text = $("text").value.trim();
  if (!text) return;
  $("text").value = "";
  const nonce = crypto.randomUUID();
  const li = row($("messages"), "mine pending", ["from", subject], ["text", text]);
  own.set(nonce, li);
  try {
    await client.publish("message", { text, nonce });
    li.classList.remove("pending"); // the event itself comes before or after
  } catch (error) {
    if (own.has(nonce)) li.title = `not confirmed: ${error.message}`;
  }
});

$("cut").addEventListener("click", () => {
  if ($("cut").dataset.state === "waiting") client.connect();
  else client.cut(AWAY_MS);
});

// A page opened as ?as=bob&room=… starts by itself.
const asked = new URLSearchParams(location.search);
if (asked.has("room")) $("room").value = asked.get("room");
if (asked.has("as")) {
  $("subject").value = asked.get("as");
  $("enter").requestSubmit();
}

// The client in a thread of its own: its timers are not throttled with the page's,
// and it can stop reading, which a page cannot. What it hears goes to the page as
// [what, ...], what the page wants comes as [method, ...].

import { Client } from "./client.js";

const SLOW_RATE = 32 * 1024; // bytes read a second by a slow reader

let client = null;
let slow = null; // shared with the page: 1 while this reader is to be slow
let inSight = Promise.resolve(); // resolves when the page is visible
let seen = () => {};

const tell = (...message) => postMessage(message);

// pace blocks this thread, so that the browser's buffers fill, then the kernel's,
// then the session's queue at the server. The page may wake it at any time.
function pace(size) {
  if (slow && Atomics.load(slow, 0) === 1) Atomics.wait(slow, 0, 1, (size / SLOW_RATE) * 1000);
}

const methods = {
  start({ url, tokens, shared }) {
    slow = shared && new Int32Array(shared);
    const token = async () => {
      const answer = await fetch(tokens, { cache: "no-store" });
      if (!answer.ok) throw new Error(`no token: ${answer.status}`);
      return (await answer.json()).token;
    };
    client = new Client({ url, token, tell, pace, visible: () => inSight });
    client.connect();
  },

  visible(is) {
    seen();
    if (!is) inSight = new Promise((resolve) => { seen = resolve; });
  },

  publish(room, event, data, nonce) {
    client.publish(room, event, data).then(
      (result) => tell("published", nonce, result),
      (error) => tell("unpublished", nonce, error.message));
  },

  async burst(room, count, bytes) {
    const pad = "x".repeat(bytes);
    let refused = 0;
    for (let n = 1; n <= count; n += 32) {
      const batch = Array.from({ length: Math.min(32, count - n + 1) }, (_, i) =>
        client.publish(room, "burst", { n: n + i, of: count, pad }));
      for (const { status } of await Promise.allSettled(batch)) if (status === "rejected") refused++;
    }
    tell("burst", count, refused);
  },
};

onmessage = ({ data: [method, ...args] }) => (methods[method] ?? client[method].bind(client))(...args);

// Performs tests/behaviour/script.json, which that folder's doc.go describes, with the
// package ws. The setting is in the variable BEHAVIOUR.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { decode, encode } from '@msgpack/msgpack';
import WebSocket from 'ws';

const { url, pid, alice, bob, codec, compression, ca } = JSON.parse(process.env.BEHAVIOUR);
const patience = 20_000;
const binary = codec === 'msgpack';
const clients = new Map();
const bound = new Map(Object.entries({ alice, bob, codec, compression }));

// within fails when a promise takes too long.
function within(promise, what) {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(`waiting for ${what}`)), patience); });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

class Client {
  #socket; #held = []; #waiting = []; #end;

  async connect() {
    this.#socket = new WebSocket(`${url}/v1/ws`, [`pulse.v1.${codec}`], { perMessageDeflate: compression && { threshold: 64 }, ca: readFileSync(ca) });
    this.#socket.on('message', (message, isBinary) => {
      assert.equal(isBinary, binary, 'a message of the other kind');
      this.#take(binary ? decode(message) : JSON.parse(message.toString()));
    });
    this.#end = new Promise((ended) => this.#socket.on('close', ended));
    this.#socket.on('error', () => {}); // 'close' follows
    await within(once(this.#socket, 'open'), 'the connection');
  }

  #take(frame) {
    const at = this.#waiting.findIndex(({ fits }) => fits(frame));
    if (at < 0) this.#held.push(frame);
    else this.#waiting.splice(at, 1)[0].resolve(frame);
  }

  #encode(frame) { return binary ? encode(frame) : JSON.stringify(frame); }

  send(frame) { this.#socket.send(this.#encode(frame)); }

  fragments(frame) {
    const message = Buffer.from(this.#encode(frame));
    const third = Math.floor(message.length / 3);
    this.#socket.send(message.subarray(0, third), { binary, fin: false });
    this.#socket.send(message.subarray(third, 2 * third), { binary, fin: false });
    this.#socket.send(message.subarray(2 * third), { binary, fin: true });
  }

  raw(texts) { this.#socket.send(binary ? Buffer.from(texts.msgpack, 'hex') : texts.json); }

  async await(want) {
    const fits = (f) => ['t', 'room', 'id'].every((name) => !(name in want) || f[name] === want[name]);
    const at = this.#held.findIndex(fits);
    if (at >= 0) return like(want, this.#held.splice(at, 1)[0]);
    const came = new Promise((resolve, reject) => {
      this.#waiting.push({ fits, resolve });
      this.#end.then((code) => reject(new Error(`closed ${code}`)));
    });
    like(want, await within(came, `this; not taken: ${JSON.stringify(this.#held)}`));
  }

  async ping(payload) {
    this.#socket.ping(payload);
    const [pong] = await within(once(this.#socket, 'pong'), 'a pong');
    assert.equal(pong.toString(), payload);
  }

  async close(code) {
    this.#socket.close(code);
    await this.closed(code);
  }

  async closed(code) { assert.equal(await within(this.#end, 'the close'), code); }

  cut() { this.#socket.terminate(); }
}

function fill(v) {
  if (typeof v === 'string' && v.startsWith('$')) return bound.get(v.slice(1));
  if (Array.isArray(v)) return v.map(fill);
  if (v !== null && typeof v === 'object') return Object.fromEntries(Object.entries(v).map(([k, e]) => [k, fill(e)]));
  return v;
}

// like compares what was awaited with what came, and binds names.
function like(want, got) {
  if (want === '*') return assert.ok(got !== undefined && got !== null);
  if (typeof want === 'string' && want.startsWith('$')) {
    const name = want.slice(1);
    if (!bound.has(name)) bound.set(name, got);
    return assert.deepEqual(got, bound.get(name));
  }
  if (Array.isArray(want)) {
    assert.equal(got?.length, want.length, JSON.stringify(got));
    return want.forEach((w, i) => like(w, got[i]));
  }
  if (want !== null && typeof want === 'object') {
    assert.equal(typeof got, 'object', JSON.stringify(got));
    return Object.entries(want).forEach(([k, w]) => like(w, got[k]));
  }
  return assert.equal(got, want);
}

async function perform(steps) {
  for (const step of steps) {
    const [who, what, ...rest] = step;
    try {
      if (who === 'set') bound.set(what, rest[0].repeat(rest[1]));
      else if (who === 'node') process.kill(pid, 'SIGTERM');
      else if (who === 'times') {
        for (let i = 1; i <= what; i++) {
          bound.set('i', i);
          await perform(rest[0]);
        }
      } else {
        if (what === 'connect') clients.set(who, new Client());
        await clients.get(who)[what](what === 'send' || what === 'fragments' ? fill(rest[0]) : rest[0]);
      }
    } catch (err) {
      err.message = `${JSON.stringify(step).slice(0, 300)}\n${err.message}`;
      throw err;
    }
  }
}

await perform(JSON.parse(readFileSync('script.json', 'utf8')));
process.exit(0);

// Run by node_test.go: PAGE is the folder of the demo page. Its client against
// sockets and a clock that the test holds: what it does about each way in which a
// connection can end.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { beforeEach, mock, test } from 'node:test';

class Socket {
  static OPEN = 1;
  static all = [];
  readyState = 1;
  sent = [];
  constructor() { Socket.all.push(this); }
  send(text) { this.sent.push(JSON.parse(text)); }
  close(code) { this.closed = code ?? 'no code'; }
  hear(frame) { this.onmessage({ data: JSON.stringify(frame) }); }
}
globalThis.WebSocket = Socket;
const source = await readFile(`${process.env.PAGE}/client.js`, 'utf8');
const { Client } = await import(`data:text/javascript,${encodeURIComponent(source)}`);

let told, tokens, inSight;
const last = () => Socket.all.at(-1);
const asked = (t) => last().sent.filter((f) => f.t === t);
const state = () => told.findLast(([what]) => what === 'status')[1];
const settle = async () => { for (let i = 0; i < 10; i++) await null; };
const pass = async (ms) => { mock.timers.tick(ms); await settle(); };

beforeEach(() => {
  mock.timers.reset();
  mock.timers.enable({ apis: ['setTimeout', 'Date'] });
  mock.method(Math, 'random', () => 0.5);
  Socket.all.length = 0;
  [told, tokens, inSight] = [[], 0, true];
});

let sights = [];
async function client() {
  const c = new Client({
    url: 'ws://x', token: async () => `token-${++tokens}`, tell: (...message) => told.push(message),
    visible: () => inSight ? Promise.resolve() : new Promise((seen) => sights.push(seen)),
  });
  c.join('chat:a');
  c.connect();
  await settle();
  await welcome();
  return c;
}

const at = (offset) => ({ room: 'chat:a', epoch: 'e', offset });
async function welcome(more = {}) {
  last().onopen();
  const rooms = asked('hello')[0].rooms.map(({ room }) => ({ room, ok: { ...at(0), room, pe: 'p', seq: 5, count: 1, members: [{ subject: 'me' }], ...more } }));
  last().hear({ t: 'welcome', session: 's', resume: `r${Socket.all.length}`, subject: 'me', ping_ms: 25_000, pong_ms: 8_000, rooms });
  await settle();
}

for (const [code, want] of Object.entries({
  1000: 'closed', 1002: 'closed', 1003: 'closed', 1007: 'closed', 1008: 'closed', 1009: 'closed', 1010: 'closed',
  4400: 'closed', 4403: 'closed', 4444: 'closed',
  1001: 'waiting', 1005: 'waiting', 1006: 'waiting', 1011: 'waiting', 1012: 'waiting', 1013: 'waiting', 3000: 'waiting',
  4500: 'waiting', 4529: 'waiting', 4599: 'waiting',
})) {
  test(`${code}: ${want}`, async () => {
    await client();
    last().hear({ t: 'event', ...at(7), event: 'message', data: 1 });
    last().onclose({ code: Number(code), reason: '' });
    assert.equal(state(), want);
    await pass(60_000);
    assert.equal(Socket.all.length, want === 'closed' ? 1 : 2);
    if (want === 'closed') return;
    last().onopen();
    const [hello] = asked('hello');
    assert.equal(hello.resume, 'r1');
    assert.deepEqual(hello.rooms, [{ room: 'chat:a', presence: true, epoch: 'e', offset: 7 }]);
  });
}

test('backoff grows to a bound, and begins anew after ten seconds of being welcome', async () => {
  await client();
  const waits = [];
  const wait = async () => {
    last().onclose({ code: 1006, reason: '' });
    waits.push(told.findLast(([what]) => what === 'status')[2].due - Date.now());
    await pass(waits.at(-1));
  };
  for (let i = 0; i < 8; i++) await wait();
  assert.deepEqual(waits, [250, 500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
  await welcome();
  await pass(9_999);
  await wait();
  assert.equal(waits.at(-1), 10_000);
  await welcome();
  await pass(10_000);
  await wait();
  assert.equal(waits.at(-1), 250);
});

test('a range in the reason of a close, or in a drain, is kept', async () => {
  await client();
  last().onclose({ code: 1012, reason: '3000-5000' });
  await pass(3_999);
  assert.equal(Socket.all.length, 1);
  await pass(1);
  assert.equal(Socket.all.length, 2);
  await welcome();
  last().hear({ t: 'drain', reconnect_ms: [100, 300] });
  assert.equal(last().closed, 'no code', 'which leaves the session alive');
  await pass(200);
  assert.equal(Socket.all.length, 3);
});

test('4401 asks for new credentials at once, once for each welcome', async () => {
  await client();
  last().onclose({ code: 4401, reason: '' });
  await pass(0);
  last().onopen();
  assert.equal(asked('hello')[0].token, 'token-2');
  last().onclose({ code: 4401, reason: '' });
  assert.equal(state(), 'closed');
});

test('4401 after a welcome that came between asks again', async () => {
  await client();
  for (let i = 2; i < 5; i++) {
    last().onclose({ code: 4401, reason: '' });
    await pass(0);
    await welcome();
  }
  assert.equal(state(), 'live');
});

test('4409: the session is over; the page starts a new one when it is in sight', async () => {
  await client();
  inSight = false;
  last().onclose({ code: 4409, reason: '' });
  await pass(60_000);
  assert.equal(Socket.all.length, 1);
  sights.pop()();
  await settle();
  last().onopen();
  assert.equal(asked('hello')[0].resume, undefined);
  assert.deepEqual(asked('hello')[0].rooms, [{ room: 'chat:a', presence: true, epoch: 'e', offset: 0 }]);
});

test('silence for ping and pong drops the connection; a throttled clock waits for pong first', async () => {
  await client();
  await pass(32_999);
  last().hear({ t: 'ping' });
  assert.equal(asked('pong').length, 1);
  await pass(32_999);
  assert.equal(state(), 'live');
  await pass(1);
  assert.equal(state(), 'waiting');

  await pass(20_000);
  await welcome();
  mock.timers.setTime(Date.now() + 100_000); // slept, and its timer is that late
  await pass(0);
  assert.equal(state(), 'live');
  await pass(8_000);
  assert.equal(state(), 'waiting');
});

test('credentials are renewed when they end soon', async () => {
  await client();
  last().hear({ t: 'expiring', in_ms: 30_000 });
  await settle();
  const [{ id, token }] = asked('token');
  assert.equal(token, 'token-2');
  last().hear({ t: 'reply', id, ok: { exp_ms: 9, resume: 'newer' } });
  await settle();
  assert.deepEqual(told.at(-1), ['renewed', 9]);
  last().onclose({ code: 1006, reason: '' });
  await pass(1000);
  last().onopen();
  assert.equal(asked('hello')[0].resume, 'newer');
});

test('presence: changes in a row are applied, a hole asks for the whole', async () => {
  await client();
  const present = () => told.findLast(([what]) => what === 'presence')[2];
  assert.deepEqual(present().members, ['me']);
  last().hear({ t: 'presence', room: 'chat:a', pe: 'p', prev: 5, seq: 7, join: [{ subject: 'bob' }, { subject: 'eve' }] });
  last().hear({ t: 'presence', room: 'chat:a', pe: 'p', prev: 7, seq: 8, leave: ['eve'], update: [{ subject: 'bob' }] });
  assert.deepEqual(present(), { members: ['bob', 'me'], count: 2, join: [], leave: ['eve'] });
  assert.equal(asked('join').length, 0);

  last().hear({ t: 'presence', room: 'chat:a', pe: 'p', prev: 9, seq: 10, join: [{ subject: 'zoe' }] });
  const [{ id, epoch, offset }] = asked('join');
  assert.deepEqual([epoch, offset], ['e', 0], 'and no event is lost by it');
  last().hear({ t: 'reply', id, ok: { ...at(0), pe: 'p', seq: 10, count: 3, members: [{ subject: 'me' }, { subject: 'ann' }, { subject: 'zoe' }] } });
  await settle();
  assert.deepEqual(present().members, ['ann', 'me', 'zoe']);

  last().hear({ t: 'presence', room: 'chat:a', pe: 'p', prev: 10, seq: 11, count: 5000 });
  assert.deepEqual(present(), { members: null, count: 5000, join: [], leave: [] });
  last().hear({ t: 'presence', room: 'chat:a', pe: 'q', prev: 0, seq: 2, full: true, count: 1, members: [{ subject: 'me' }] });
  assert.deepEqual(present().members, ['me']);
});

test('a reset and an event move the position, what is not known changes nothing', async () => {
  await client();
  last().hear({ t: 'reset', room: 'chat:a', reason: 'overflow', epoch: 'f', offset: 40 });
  last().hear({ t: 'event', room: 'chat:a', event: 'cursor', data: 1 });
  last().hear({ t: 'event', room: 'chat:gone', event: 'message', data: 1, epoch: 'f', offset: 99 });
  last().hear({ t: 'news from the future' });
  last().onclose({ code: 1006, reason: '' });
  await pass(1000);
  last().onopen();
  assert.deepEqual(asked('hello')[0].rooms, [{ room: 'chat:a', presence: true, epoch: 'f', offset: 40 }]);
});

test('a room that says later is joined later, one that says no is given up', async () => {
  const c = await client();
  c.join('chat:b');
  c.join('chat:c');
  const [b, ch] = asked('join');
  last().hear({ t: 'reply', id: b.id, err: { code: 'backpressured', message: '', retry_after_ms: 50 } });
  last().hear({ t: 'reply', id: ch.id, err: { code: 'forbidden', message: '' } });
  await settle();
  await pass(50);
  assert.equal(asked('join').length, 3);
  assert.equal(asked('join')[2].room, 'chat:b');
  assert.equal(told.filter(([what, room]) => what === 'refused' && room === 'chat:c').length, 1);
});

test('requests end with their connection, and close ends the session', async () => {
  const c = await client();
  const publish = c.publish('chat:a', 'message', 1);
  last().onclose({ code: 1006, reason: '' });
  await assert.rejects(publish, /connection lost/);
  await pass(1000);
  await welcome();
  c.close();
  assert.equal(last().closed, 1000);
  await pass(60_000);
  assert.equal(Socket.all.length, 2);
});

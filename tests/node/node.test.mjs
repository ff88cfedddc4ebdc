// Run by node_test.go against `pulse-node dev`: URL, ALICE and BOB are in the
// environment.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Client } from './client.mjs';

const { URL, ALICE, BOB } = process.env;
let rooms = 0;
const fresh = () => `chat:node-${++rooms}`;

for (const mine of ['json', 'msgpack']) {
  for (const theirs of ['json', 'msgpack']) {
    test(`${mine} to ${theirs}: killed and resumed from its position without a gap`, async () => {
      const room = fresh();
      const [alice] = await Client.enter(URL, mine, ALICE, { room });
      let [bob] = await Client.enter(URL, theirs, BOB, { room });
      let said = 0;
      const say = async (count) => {
        while (count--) {
          const { ok } = await alice.ask({ t: 'publish', room, event: 'message', data: { n: ++said, text: 'żółć 世界 😀' } });
          assert.equal(ok.outcome, 'accepted');
          assert.equal(ok.offset, said);
        }
      };
      let last, heard = 0;
      const hear = async (upTo) => {
        while (heard < upTo) {
          last = await bob.event();
          assert.deepEqual({ n: last.data.n, offset: last.offset, text: last.data.text, from: last.from },
            { n: ++heard, offset: heard, text: 'żółć 世界 😀', from: 'alice' });
        }
      };
      await say(10);
      await hear(7);
      for (let round = 0; round < 3; round++) {
        await bob.kill();
        await say(20);
        let welcome;
        [bob, welcome] = await Client.enter(URL, theirs, BOB, { room, epoch: last.epoch, offset: last.offset });
        assert.equal(welcome.rooms[0].ok.recovered, true);
        await say(3);
        await hear(said - 2);
      }
      await alice.close();
      assert.equal((await bob.close()).code, 1000);
    });
  }
}

test('bin reaches msgpack clients as bytes and JSON clients as base64', async () => {
  const room = fresh();
  const [alice] = await Client.enter(URL, 'msgpack', ALICE, { room });
  const [bob] = await Client.enter(URL, 'json', BOB, { room });
  await alice.ask({ t: 'publish', room, event: 'message', data: { b: new Uint8Array([0, 255, 128]) } });
  assert.deepEqual([...(await alice.event()).data.b], [0, 255, 128]);
  assert.equal((await bob.event()).data.b, 'AP+A');
  await Promise.all([alice.close(), bob.close()]);
});

test('a malformed frame is closed 4400, a bad token 4401', async () => {
  const [alice] = await Client.enter(URL, 'json', ALICE);
  alice.raw('{"t":"ping"');
  assert.equal((await alice.end).code, 4400);
  const eve = await Client.connect(URL);
  eve.send({ t: 'hello', token: `${ALICE}x` });
  assert.equal((await eve.end).code, 4401);
});

test('a position that cannot be served is reset', async () => {
  const room = fresh();
  const [alice, welcome] = await Client.enter(URL, 'json', ALICE, { room, epoch: 'another', offset: 5 });
  const { ok } = welcome.rooms[0];
  assert.equal(ok.reset, 'epoch');
  assert.equal(ok.recovered, false);
  await alice.close();
});

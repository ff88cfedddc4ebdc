// Sessions of the demo page: tabs, takeovers, credentials that end.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { comeBack, fact, here, logs, messages, page, say, shows, withBrowser } from './browser.mjs';
import { Client } from './client.mjs';
import { Proxy } from './proxy.mjs';

const { URL: node, BOB } = process.env;

export function session() {
  test('two browsers with three tabs each see one of each, until the last tab is closed', () => withBrowser(async (b) => {
    const tabs = [];
    for (const subject of ['alice', 'bob']) {
      const profile = await b.profile();
      for (let i = 0; i < 3; i++) tabs.push(await b.tab(profile, `as=${subject}&room=chat:tabs`));
    }
    for (const tab of tabs) await here(tab, 'alice', 'bob');
    const [alice, , , ...bobs] = tabs;
    assert.match(await fact(alice, 'events'), /bob came/);

    await bobs[0].close();
    await bobs[1].close();
    await say(bobs[2], 'still here');
    await shows(alice, 1);
    await here(alice, 'alice', 'bob');
    await bobs[2].click('#cut'); // a lost connection is no goodbye
    await bobs[2].waitForSelector('#status[data-state=waiting]');
    await comeBack(bobs[2]);
    assert.equal((await fact(alice, 'events')).match(/bob (came|left)/g).join(), 'bob came');
    const closed = Date.now();
    await bobs[2].close();
    await here(alice, 'alice');
    assert.ok(Date.now() - closed < 12_000, 'a closed tab leaves at once, not after the grace');
    await logs(alice, 'bob left');
  }));

  test('a duplicated tab is a session of its own and takes nothing over', () => withBrowser(async (b) => {
    const profile = await b.profile();
    const first = await b.tab(profile, 'as=alice&room=chat:twice');
    const [second] = await Promise.all([first.waitForEvent('popup'), first.evaluate(() => { window.open(location.href); })]);
    await second.waitForSelector('#status[data-state=live]');
    assert.notEqual(await fact(first, 'session'), await fact(second, 'session'));
    await say(second, 'from the second');
    await shows(first, 1);
    assert.equal(await fact(first, 'resumed'), 'not yet');
  }));

  test('a session that is taken over goes on as a new one, and misses nothing', () => withBrowser(async (b) => {
    const network = await Proxy.to(new URL(page));
    try {
      const bob = await b.tab(await b.profile(), 'as=bob&room=chat:taken', network.url);
      const session = await fact(bob, 'session');
      const resume = /"resume":"([^"]+)"/.exec(network.seen)[1];
      const thief = await Client.connect(node);
      thief.send({ t: 'hello', token: BOB, resume, rooms: [{ room: 'chat:taken' }] });
      const welcome = await thief.next((f) => f.t === 'welcome');
      assert.equal(welcome.session, session);
      assert.equal(welcome.resumed, true);
      await thief.ask({ t: 'publish', room: 'chat:taken', event: 'message', data: { text: 'mine now' } });

      await logs(bob, '4409');
      await bob.waitForSelector('#status[data-state=live]');
      await shows(bob, 1);
      assert.deepEqual(await messages(bob), ['mine now']);
      assert.notEqual(await fact(bob, 'session'), session);
      assert.equal(await fact(bob, 'resumed'), 'new session');
      await say(bob, 'and mine');
      await thief.next((f) => f.t === 'event' && f.data.text === 'and mine'); // both are there
      await thief.close();
    } finally {
      network.close();
    }
  }));

  test('credentials are renewed before they end, without a gap', () => withBrowser(async (b) => {
    const alice = await b.tab(await b.profile(), 'as=alice&room=chat:renewed&ttl=3s');
    const session = await fact(alice, 'session');
    await logs(alice, 'credentials renewed');
    await say(alice, 'hello');
    await shows(alice, 1);
    assert.equal(await fact(alice, 'session'), session);
  }));

  test('credentials that were left to end cost a connection, and no message', () => withBrowser(async (b) => {
    const profile = await b.profile();
    let asked = 0;
    await profile.route('**/demo/token/**', (route) => ++asked === 2 ? route.fulfill({ status: 503 }) : route.continue());
    const alice = await b.tab(profile, 'as=alice&room=chat:ended&ttl=2s');
    const bob = await b.tab(await b.profile(), 'as=bob&room=chat:ended');
    const session = await fact(alice, 'session');
    await logs(alice, 'connection lost (4401)');
    await say(bob, 'do you hear me?');
    await shows(alice, 1);
    await alice.waitForSelector('#status[data-state=live]');
    assert.equal(await fact(alice, 'session'), `${session} (resumed)`);
    assert.ok(asked > 2);
    b.faults.length = 0; // the browser's own words about the answer 503
  }));
}

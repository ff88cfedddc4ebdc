// The demo page in windows that chat, are cut off and come back.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { comeBack, fact, logs, messages, page, say, shows, withBrowser } from './browser.mjs';
import { Proxy } from './proxy.mjs';

export function chat() {
  test('two windows chat, and one that was cut off gets what it missed, in order', () => withBrowser(async (b) => {
    const alice = await b.tab(await b.profile(), 'as=alice&room=chat:lobby');
    const bob = await b.tab(await b.profile(), 'as=bob&room=chat:lobby');
    await say(alice, 'hello <b>bob</b>');
    await shows(bob, 1);
    await say(bob, 'hi alice');
    await shows(alice, 2);

    const session = await fact(bob, 'session');
    await bob.click('#cut');
    await bob.waitForSelector('#status[data-state=waiting]');
    for (const text of ['one', 'two', 'three']) await say(alice, text);
    await shows(alice, 5);
    assert.equal((await messages(bob)).length, 2, 'it was cut off');
    await bob.click('#cut'); // which is "Reconnect now"
    await bob.waitForSelector('#status[data-state=live]');
    await shows(bob, 5);

    const all = ['hello <b>bob</b>', 'hi alice', 'one', 'two', 'three'];
    assert.deepEqual(await messages(bob), all);
    assert.deepEqual(await messages(alice), all);
    await logs(bob, 'joined again from');
    assert.match(await fact(bob, 'events'), /joined again from [^:]+:2/, 'from where it was cut off');
    assert.equal(await bob.$$eval('#events .replayed', (list) => list.length), 3);
    assert.equal(await fact(bob, 'replayed'), '3');
    assert.equal(await alice.$$eval('.pending', (list) => list.length), 0);
    assert.match(await fact(bob, 'position'), /:5$/);
    assert.equal(await fact(bob, 'session'), `${session} (resumed)`);
    assert.equal(await fact(bob, 'resumed'), 'session kept');
  }));

  test('rooms are apart, and those out of sight go on', () => withBrowser(async (b) => {
    const alice = await b.tab(await b.profile(), 'as=alice&room=chat:one');
    const bob = await b.tab(await b.profile(), 'as=bob&room=chat:two');
    await alice.fill('#room', 'chat:two');
    await alice.click('#enter button');
    await alice.click('#rooms button:has-text("chat:one")');
    await say(alice, 'in one');
    await say(bob, 'in two');
    await alice.waitForSelector('#rooms button:has-text("chat:two (1)")');
    assert.deepEqual(await messages(alice), ['in one']);
    await alice.click('#rooms button:has-text("chat:two")');
    assert.deepEqual(await messages(alice), ['in two']);
    assert.deepEqual(await messages(bob), ['in two']);
  }));

  test('a network that drops every connection by the dozen costs no message', () => withBrowser(async (b) => {
    const network = await Proxy.to(new URL(page));
    try {
      const alice = await b.tab(await b.profile(), 'as=alice&room=chat:torn');
      const bob = await b.tab(await b.profile(), 'as=bob&room=chat:torn', network.url);
      const all = [];
      for (let round = 0; round < 12; round++) {
        network.cut();
        await bob.waitForSelector('#status[data-state=waiting]');
        for (const text of ['a', 'b', 'c']) {
          all.push(`${text}${round}`);
          await say(alice, all.at(-1));
        }
        await comeBack(bob);
        await shows(bob, all.length);
      }
      assert.deepEqual(await messages(bob), all);
      b.faults.length = 0; // the browser's own words about connections that were reset
    } finally {
      network.close();
    }
  }));
}

// The demo page reads slowly, and everybody else goes on.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { logs, numbers, say, shows, withBrowser } from './browser.mjs';

export function slow() {
  test('cursors arrive while they are moved, and those of a page itself are not drawn', () => withBrowser(async (b) => {
    const alice = await b.tab(await b.profile(), 'as=alice&room=chat:cursors');
    const bob = await b.tab(await b.profile(), 'as=bob&room=chat:cursors');
    const box = await (await bob.$('#canvas')).boundingBox();
    for (let i = 1; i <= 20; i++) {
      await bob.mouse.move(box.x + (box.width * i) / 21, box.y + box.height / 2);
      await bob.waitForTimeout(40); // a hand's speed
    }
    await alice.waitForFunction(() => Number(document.querySelector('#updates').textContent) >= 10);
    const painted = await alice.$eval('#canvas', (canvas) =>
      canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some((v) => v !== 0));
    assert.ok(painted, "bob's cursor is on alice's canvas");
    assert.equal(await numbers(bob, 'updates'), 0);
  }));

  test('a slow reader holds nobody up, loses cursors only, and comes to the end or is reset', () => withBrowser(async (b) => {
    const alice = await b.tab(await b.profile(), 'as=alice&room=chat:slow');
    const bob = await b.tab(await b.profile(), 'as=bob&room=chat:slow');
    await bob.check('#wave');
    await alice.check('#slow');
    await bob.click('#burst');
    await logs(bob, 'sent 400 of 400');
    await say(bob, 'after the burst');
    await shows(bob, 1);
    await bob.waitForFunction(() => document.querySelector('#position').textContent.endsWith(':401')); // all went through
    const replaced = await numbers(alice, 'replaced');
    assert.ok(await numbers(alice, 'received') < 300, 'a slow reader is behind');
    await bob.waitForTimeout(1000); // of cursors, for which there is no place now

    await alice.uncheck('#slow');
    await alice.waitForFunction(() => document.querySelector('#position').textContent.endsWith(':401'));
    if (await numbers(alice, 'resets') === 0) await shows(alice, 1);
    else await logs(alice, 'reset (overflow)');
    await alice.waitForFunction((n) => Number(document.querySelector('#replaced').textContent) > n, replaced);
    await say(bob, 'and on it goes');
    await alice.waitForFunction(() => document.querySelector('#messages').textContent.includes('and on it goes'));
  }));
}

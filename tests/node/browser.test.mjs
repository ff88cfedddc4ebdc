// Run by node_test.go against `pulse-node dev`: URL and CHROMIUM are in the
// environment. Two windows chat on the demo page, and one is cut off meanwhile.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chromium } from 'playwright-core';

const page = process.env.URL.replace('ws', 'http');

test('two windows chat, and one that was cut off gets what it missed, in order', async () => {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync'],
  });
  const faults = [];
  const open = async (subject) => {
    const window = await (await browser.newContext()).newPage();
    window.on('pageerror', (error) => faults.push(`${subject}: ${error.message}`));
    window.on('console', (message) => { if (message.type() === 'error') faults.push(`${subject}: ${message.text()}`); });
    await window.goto(page);
    await window.selectOption('#subject', subject);
    await window.click('#enter button');
    await window.waitForSelector('#status[data-state=live]');
    return window;
  };
  const say = async (window, text) => {
    await window.fill('#text', text);
    await window.click('#send');
  };
  const messages = (window) => window.$$eval('#messages li .text', (list) => list.map((e) => e.textContent));
  const shows = (window, count) => window.waitForFunction((n) => document.querySelectorAll('#messages li').length >= n, count);

  try {
    const alice = await open('alice');
    const bob = await open('bob');
    await say(alice, 'hello <b>bob</b>');
    await shows(bob, 1);
    await say(bob, 'hi alice');
    await shows(alice, 2);

    await bob.click('#cut');
    await bob.waitForSelector('#status[data-state=waiting]');
    for (const text of ['one', 'two', 'three']) await say(alice, text);
    await shows(alice, 5);
    assert.equal((await messages(bob)).length, 2, 'it was cut off');
    await bob.waitForSelector('#status[data-state=live]');
    await shows(bob, 5);

    const all = ['hello <b>bob</b>', 'hi alice', 'one', 'two', 'three'];
    assert.deepEqual(await messages(bob), all);
    assert.deepEqual(await messages(alice), all);
    const events = await bob.$eval('#events', (e) => e.textContent);
    assert.match(events, /joined again from [^:]+:2/, 'from where it was cut off');
    assert.equal(await bob.$$eval('#events .replayed', (list) => list.length), 3);
    assert.equal(await alice.$$eval('.pending', (list) => list.length), 0);
    assert.match(await bob.textContent('#position'), /:5$/);
    assert.deepEqual(faults, []);
  } finally {
    await browser.close();
  }
});

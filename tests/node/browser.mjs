// The demo page in windows of one browser: what tests of it have in common.
import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';

export const page = process.env.URL.replace('ws', 'http');

const args = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync'];

const browser = chromium.launch({ executablePath: process.env.CHROMIUM, args });

export const closeBrowser = async () => (await browser).close();

// withBrowser runs a test; whatever one of its pages complains of fails it.
export async function withBrowser(test) {
  const b = new Browser(await browser);
  try {
    await test(b);
    assert.deepEqual(b.faults, []);
  } finally {
    for (const profile of b.profiles) await profile.close();
  }
}

class Browser {
  #browser;
  faults = [];
  profiles = [];

  constructor(browser) { this.#browser = browser; }

  // profile is like a browser of its own: nothing is shared with others.
  async profile() {
    this.profiles.push(await this.#browser.newContext());
    return this.profiles.at(-1);
  }

  async tab(profile, query, at = page) {
    const window = await profile.newPage();
    window.setDefaultTimeout(60_000); // on a machine that does much else
    window.on('pageerror', (error) => this.faults.push(`${query}: ${error.message}`));
    window.on('console', (message) => { if (message.type() === 'error') this.faults.push(`${query}: ${message.text()}`); });
    await window.goto(`${at}?${query}`);
    await window.waitForSelector('#status[data-state=live]');
    return window;
  }
}

export const say = async (window, text) => {
  await window.fill('#text', text);
  await window.click('#send');
};
export const messages = (window) => window.$$eval('#messages li .text', (list) => list.map((e) => e.textContent));
export const shows = (window, count) => window.waitForFunction((n) => document.querySelectorAll('#messages li').length >= n, count);
// comeBack has a page whose connection is lost not wait for its backoff.
export const comeBack = async (window) => {
  while (await window.getAttribute('#status', 'data-state') !== 'live') {
    if (await window.getAttribute('#status', 'data-state') === 'waiting') await window.click('#cut');
    await window.waitForSelector('#status[data-state=live], #status[data-state=waiting]');
  }
};
export const here = (window, ...subjects) => window.waitForFunction((want) =>
  [...document.querySelectorAll('#members li')].map((e) => e.textContent.replace(' (you)', '')).join() === want, subjects.join());
export const logs = (window, text) => window.waitForFunction((t) => document.querySelector('#events').textContent.includes(t), text);
export const fact = (window, id) => window.textContent(`#${id}`);
export const numbers = (window, id) => fact(window, id).then(Number);

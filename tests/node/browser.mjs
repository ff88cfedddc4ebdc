// The demo page in windows of one browser: what tests of it have in common.
import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';

export const page = process.env.URL.replace('ws', 'http');

const args = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync'];

// with runs a test in a browser; whatever a page complains of fails it.
export async function withBrowser(test) {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args });
  const faults = [];
  try {
    await test(new Browser(browser, faults));
    assert.deepEqual(faults, []);
  } finally {
    await browser.close();
  }
}

class Browser {
  constructor(browser, faults) { Object.assign(this, { browser, faults }); }

  // profile is like a browser of its own: nothing is shared with others.
  profile() { return this.browser.newContext(); }

  async tab(profile, query, at = page) {
    const window = await profile.newPage();
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
export const members = (window) => window.$$eval('#members li', (list) => list.map((e) => e.textContent.replace(' (you)', '')));
export const here = (window, ...subjects) => window.waitForFunction((want) =>
  [...document.querySelectorAll('#members li')].map((e) => e.textContent.replace(' (you)', '')).join() === want, subjects.join());
export const logs = (window, text) => window.waitForFunction((t) => document.querySelector('#events').textContent.includes(t), text);
export const fact = (window, id) => window.textContent(`#${id}`);
export const numbers = (window, id) => fact(window, id).then(Number);

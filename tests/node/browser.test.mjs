// Run by node_test.go against `pulse-node dev`: URL, BOB and CHROMIUM are in the
// environment. The demo page in one browser, which the tests share.
import { after, describe } from 'node:test';
import { closeBrowser } from './browser.mjs';
import { chat } from './chat.mjs';
import { session } from './session.mjs';
import { slow } from './slow.mjs';

describe('chat and resume', { concurrency: true }, chat);
describe('sessions', { concurrency: true }, session);
describe('slow readers', slow);
after(closeBrowser);

// A network between a browser and the node, whose connections can be reset, and
// which hears what the node says.
import { once } from 'node:events';
import { connect, createServer } from 'node:net';

export class Proxy {
  #server; #pairs = new Set();
  url;          // where the node is reached through it
  seen = '';    // the latest that the node said, as text

  static async to(target) {
    const p = new Proxy();
    p.#server = createServer((near) => p.#take(near, connect(target.port, target.hostname)));
    p.#server.listen(0, '127.0.0.1');
    await once(p.#server, 'listening');
    p.url = `http://127.0.0.1:${p.#server.address().port}/`;
    return p;
  }

  #take(near, far) {
    const pair = [near, far];
    this.#pairs.add(pair);
    far.on('data', (bytes) => { this.seen = (this.seen + bytes.toString('latin1')).slice(-65536); });
    near.pipe(far);
    far.pipe(near);
    for (const socket of pair) {
      socket.on('error', () => {});
      socket.on('close', () => { this.#pairs.delete(pair); near.destroy(); far.destroy(); });
    }
  }

  // cut resets every connection.
  cut() { for (const [near, far] of this.#pairs) { near.resetAndDestroy(); far.resetAndDestroy(); } }

  close() { this.cut(); this.#server.close(); }
}

// A client of a node in as few lines as a stranger would write, over the packages
// ws and @msgpack/msgpack.
import { once } from 'node:events';
import { decode, encode } from '@msgpack/msgpack';
import WebSocket from 'ws';

const codecs = {
  json: {
    write: (frame) => JSON.stringify(frame),
    read: (message, binary) => {
      if (binary) throw new Error('a binary message');
      return JSON.parse(message.toString());
    },
  },
  msgpack: {
    write: (frame) => encode(frame, { useBigInt64: true }),
    read: (message, binary) => {
      if (!binary) throw new Error('a text message');
      return decode(message);
    },
  },
};

export class Client {
  #socket; #codec; #frames = []; #waiting = []; #end; #id = 0;

  static async connect(url, codec = 'json') {
    const c = new Client();
    c.#codec = codecs[codec];
    c.#socket = new WebSocket(`${url}/v1/ws`, [`pulse.v1.${codec}`]);
    c.#socket.on('message', (message, binary) => c.#take(c.#codec.read(message, binary)));
    c.#end = new Promise((ended) => c.#socket.on('close', (code, reason) => ended({ code, reason: reason.toString() })));
    await once(c.#socket, 'open');
    return c;
  }

  static async enter(url, codec, token, ...rooms) {
    const c = await Client.connect(url, codec);
    c.send({ t: 'hello', token, rooms });
    const welcome = await c.next((f) => f.t === 'welcome');
    return [c, welcome];
  }

  #take(frame) {
    const at = this.#waiting.findIndex(({ fits }) => fits(frame));
    if (at < 0) this.#frames.push(frame);
    else this.#waiting.splice(at, 1)[0].resolve(frame);
  }

  send(frame) { this.#socket.send(this.#codec.write(frame)); }

  raw(message) { this.#socket.send(message); }

  // next is the first frame that fits and was not taken yet.
  next(fits) {
    const at = this.#frames.findIndex(fits);
    if (at >= 0) return Promise.resolve(this.#frames.splice(at, 1)[0]);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ fits, resolve });
      this.#end.then((end) => reject(new Error(`closed ${end.code} ${end.reason}`)));
    });
  }

  event() { return this.next((f) => f.t === 'event'); }

  ask(frame) {
    const id = ++this.#id;
    this.send({ ...frame, id });
    return this.next((f) => f.t === 'reply' && f.id === id);
  }

  // kill drops the connection as a lost network does.
  kill() { this.#socket._socket.resetAndDestroy(); return this.#end; }

  close() { this.#socket.close(1000); return this.#end; }

  get end() { return this.#end; }
}

// Other people's cursors on a canvas. An update carries a count of its sender's,
// so that a hole tells how many were replaced by a newer one on the way.

const FADE_MS = 6000;    // since its last update
const EVERY_MS = 33;     // between two updates of one's own

export const colour = (subject) => {
  let hash = 0;
  for (const c of subject) hash = (hash * 31 + c.codePointAt(0)) % 360;
  return `hsl(${(hash * 47) % 360} 70% 50%)`;
};

export class Cursors {
  #canvas; #send; #mine = 0; #sent = 0; #drawing = false;
  #others = new Map(); // by session: {subject, x, y, n, at}
  received = 0;
  replaced = 0;

  /** send(data) publishes one's own cursor. */
  constructor(canvas, send) {
    this.#canvas = canvas;
    this.#send = send;
    canvas.addEventListener("pointermove", (e) => {
      const { left, top, width, height } = canvas.getBoundingClientRect();
      this.move((e.clientX - left) / width, (e.clientY - top) / height);
    });
    new ResizeObserver(() => this.#draw()).observe(canvas);
  }

  move(x, y) {
    const now = performance.now();
    if (now - this.#sent < EVERY_MS) return;
    this.#sent = now;
    this.#send({ x: Math.round(x * 1e4) / 1e4, y: Math.round(y * 1e4) / 1e4, n: ++this.#mine });
  }

  take({ session, from, data }) {
    const { x, y, n } = data ?? {};
    if (!(x >= 0 && x <= 1 && y >= 0 && y <= 1)) return;
    this.received++;
    const last = this.#others.get(session)?.n;
    if (n > last + 1) this.replaced += n - last - 1;
    this.#others.set(session, { subject: from ?? "server", x, y, n, at: performance.now() });
    this.#draw();
  }

  /** Another room, or a new connection: what was missed meanwhile is no hole. */
  clear() {
    this.#others.clear();
    this.#draw();
  }

  get count() { return this.#others.size; }

  #draw() {
    if (this.#drawing) return;
    this.#drawing = true;
    requestAnimationFrame(() => {
      this.#drawing = false;
      this.#paint();
    });
  }

  #paint() {
    const scale = devicePixelRatio;
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    this.#canvas.width = width * scale;
    this.#canvas.height = height * scale;
    const pen = this.#canvas.getContext("2d");
    pen.scale(scale, scale);
    pen.font = "12px system-ui, sans-serif";
    for (const [session, { subject, x, y, at }] of this.#others) {
      const age = performance.now() - at;
      if (age > FADE_MS) {
        this.#others.delete(session);
        continue;
      }
      pen.globalAlpha = 1 - age / FADE_MS;
      pen.fillStyle = colour(subject);
      pen.beginPath();
      pen.moveTo(x * width, y * height);
      pen.lineTo(x * width + 5, y * height + 14);
      pen.lineTo(x * width + 12, y * height + 9);
      pen.fill();
      pen.fillText(subject, x * width + 12, y * height + 22);
    }
    if (this.#others.size > 0) setTimeout(() => this.#draw(), 50);
  }
}

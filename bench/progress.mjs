// A progress bar on a terminal, plain lines elsewhere.
const width = 24;

function resultOf(sample) {
  const { jobs_per_second: rate, pickups, enqueues } = sample;
  const latencies = enqueues ?? (rate === undefined ? pickups : undefined);
  if (latencies) {
    const sorted = [...latencies].sort((a, b) => a - b);
    return `p50 ${sorted[Math.floor(sorted.length / 2)].toFixed(2)} ms`;
  }
  return `${Math.round(rate).toLocaleString("en")} jobs/s`;
}

export class Progress {
  #stream;
  #expected = 0;
  #done = 0;
  #line = "";
  constructor(stream) {
    this.#stream = stream;
  }
  expect(measurements) {
    this.#expected = measurements;
    this.#done = 0;
  }
  begin(what, round, rounds) {
    this.#line = `${what} (round ${round} of ${rounds})`;
    if (this.#stream.isTTY) this.#draw();
  }
  end(sample) {
    this.#finish(resultOf(sample));
  }
  fail(reason) {
    this.#finish(`failed: ${reason}`);
  }
  #finish(result) {
    this.#done++;
    if (this.#stream.isTTY) this.#stream.write("\r\x1b[K");
    this.#stream.write(`${this.#line}  ${result}\n`);
  }
  note(text) {
    if (this.#stream.isTTY) this.#stream.write("\r\x1b[K");
    this.#stream.write(`${text}\n`);
  }
  #draw() {
    const filled = Math.round((this.#done / Math.max(1, this.#expected)) * width);
    const bar = `${"█".repeat(filled)}${"░".repeat(width - filled)} ${this.#done}/${this.#expected} `;
    const room = Math.max(10, (this.#stream.columns ?? 80) - bar.length - 1);
    this.#stream.write(`\r\x1b[K${bar}${this.#line.slice(0, room)}`);
  }
}

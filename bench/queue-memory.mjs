// A million items through MemoryQueue: `node bench/queue-memory.mjs [items]`, after `npm run build`.
import { MemoryQueue } from "../dist/queue.js";

const count = Number(process.argv[2] ?? 1_000_000);
const batch = 1_000;
const labels = ["high", "normal", "low"];
/** Made beforehand, so that the producer's own work is not measured. */
const options = Array.from({ length: count }, (_, i) => ({ priority: labels[i % 3] }));

async function oneByOne() {
  const queue = new MemoryQueue();
  const push = await timed(async () => {
    for (let i = 0; i < count; i++) await queue.enqueue(i, options[i]);
  });
  const pop = await timed(async () => {
    for (let i = 0; i < count; i++) await queue.ack(await queue.dequeue());
  });
  return { push, pop };
}

async function inBatches() {
  const queue = new MemoryQueue();
  const batches = [];
  for (let i = 0; i < count; i += batch) {
    const items = options.slice(i, i + batch);
    batches.push(items.map((item, j) => ({ job: i + j, ...item })));
  }
  const push = await timed(async () => {
    for (const items of batches) await queue.enqueueMany(items);
  });
  const pop = await timed(async () => {
    for (;;) {
      const items = await queue.dequeueMany({ max: batch });
      if (items.length === 0) break;
      for (const item of items) queue.ack(item);
    }
  });
  return { push, pop };
}

async function timed(work) {
  globalThis.gc?.();
  const began = performance.now();
  await work();
  return (performance.now() - began) / 1_000;
}

const rate = (seconds) => `${(count / seconds / 1e6).toFixed(2)} M/s`.padStart(10);

console.log(`${count} items, three priorities; a pop is a take and its ack; best of five rounds`);
for (const [name, run] of Object.entries({ "one by one": oneByOne, "in batches": inBatches })) {
  const rounds = [];
  for (let i = 0; i < 5; i++) rounds.push(await run());
  const best = (what) => Math.min(...rounds.map((round) => round[what]));
  console.log(`${name.padEnd(12)} push ${rate(best("push"))}   pop ${rate(best("pop"))}`);
}

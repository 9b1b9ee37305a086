// A tenant that sends more than it may. Its one argument is JSON: { url, tenant, perSecond }. On a message
// { seconds } it sends for that long, and tells what it was answered, how long refusals took, and what
// its heap has grown by.
import { setTimeout as delay } from "node:timers/promises";
import { defineJob, Millrace } from "../../dist/index.js";

const { url, tenant, perSecond } = JSON.parse(process.argv[2]);
const millrace = await Millrace.connect({ databaseUrl: url, logLevel: "silent" });
const job = defineJob({ type: "door", queue: "door" });

const heap = () => {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
};
let accepted = 0;
let refusals = [];

async function send() {
  const at = performance.now();
  try {
    await millrace.enqueue(job, {}, { tenant });
    accepted++;
  } catch (error) {
    if (error.code !== "RATE_LIMITED") throw error;
    refusals.push(performance.now() - at);
  }
}

async function sendFor(seconds) {
  const started = performance.now();
  const calls = new Set();
  let sent = 0;
  for (let passed = 0; passed < seconds; passed = (performance.now() - started) / 1_000) {
    for (; sent < passed * perSecond; sent++) {
      const call = send().finally(() => calls.delete(call));
      calls.add(call);
    }
    await delay(5);
  }
  await Promise.all(calls);
}

const quantile = (q) => [...refusals].sort((a, b) => a - b)[Math.ceil(q * refusals.length) - 1];

process.once("message", async ({ seconds }) => {
  // What is kept for good is there after a moment of the same.
  await sendFor(Math.min(2, seconds));
  refusals = [];
  const before = heap();
  await sendFor(seconds);
  const told = { refused: refusals.length, p50Ms: quantile(0.5), p99Ms: quantile(0.99) };
  refusals = [];
  process.send({ accepted, ...told, grewBy: heap() - before });
  await millrace.stop();
  process.disconnect();
});

process.send("ready");

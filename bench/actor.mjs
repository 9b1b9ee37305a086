// One process of a measurement: a producer, a worker, or both. It does what its parent asks over the IPC
// channel, and ends with it.
import { nowMs, sleep } from "./clock.mjs";
import { payloadOf } from "./payload.mjs";
import { adapterOf } from "./systems/index.mjs";

let adapter;
let producer;
let consumer;
let handled = 0;
let duplicates = 0;
let seen = new Uint8Array(1 << 20);
let firstAt = 0;
let lastAt = 0;
let latencies = null;
let onPickup = null;
const progress = { made: 0, consumed: 0, stopped: false };

function handle(payload) {
  lastAt = nowMs();
  if (latencies) return pickedUp(payload);
  if (handled === 0) firstAt = lastAt;
  if (payload.n >= seen.length) {
    const longer = new Uint8Array(Math.max(seen.length * 2, payload.n + 1));
    longer.set(seen);
    seen = longer;
  }
  if (seen[payload.n] === 1) duplicates++;
  else {
    seen[payload.n] = 1;
    handled++;
  }
}

function pickedUp(payload) {
  latencies.push(lastAt - payload.at);
  if (onPickup) onPickup();
  else process.send({ event: "pickup" });
}

let reported = 0;
function report() {
  if (handled === reported) return;
  reported = handled;
  process.send({ event: "handled", handled, firstAt, lastAt });
}

// Waits while the backlog is as deep as it should be.
async function room(depth) {
  while (!progress.stopped && progress.made - progress.consumed > depth) await sleep(2);
}

async function produce({ count, first, bytes, batch, inFlight, depth = Infinity }) {
  const end = first + (count ?? Infinity);
  let next = first;
  progress.stopped = false;
  progress.made = 0;
  progress.consumed = 0;
  const one = async () => {
    while (next < end && !progress.stopped) {
      if (progress.made - progress.consumed > depth) await room(depth);
      progress.made++;
      await producer.one(payloadOf(next++, bytes));
    }
  };
  const many = async () => {
    while (next < end && !progress.stopped) {
      if (progress.made - progress.consumed > depth) await room(depth);
      const size = Math.min(batch, end - next);
      const from = next;
      next += size;
      progress.made += size;
      await producer.many(Array.from({ length: size }, (_, i) => payloadOf(from + i, bytes)));
    }
  };
  await Promise.all(Array.from({ length: inFlight }, batch ? many : one));
  return { next, endedAt: nowMs() };
}

// Each from when it was due, so that what holds up the caller counts as well.
async function enqueueSteadily({ first, count, perSecond }) {
  const startedAt = nowMs();
  const taken = [];
  for (let n = 0; n < count; n++) {
    const due = startedAt + (n / perSecond) * 1000;
    while (nowMs() < due) await sleep(1);
    taken.push(producer.one(payloadOf(first + n)).then(() => nowMs() - due));
  }
  return Promise.all(taken);
}

async function pickupHere({ samples }) {
  latencies = [];
  for (let n = 0; n < samples; n++) {
    await sleep(4 + Math.random() * 6);
    const pickup = new Promise((resolve) => {
      onPickup = resolve;
    });
    await producer.one(payloadOf(n, 100, nowMs()));
    await pickup;
  }
  return latencies;
}

const verbs = {
  async load({ system }) {
    adapter = await adapterOf(system);
  },
  migrate: ({ url, config }) => adapter.migrate(url, config),
  async openProducer({ url, config }) {
    producer = await adapter.openProducer(url, config);
  },
  async openConsumer({ url, config }) {
    consumer = await adapter.openConsumer(url, config, handle);
    setInterval(report, 10).unref();
  },
  async openLocal({ url, config }) {
    if (adapter.openLocal) {
      producer = await adapter.openLocal(url, config, handle);
    } else {
      producer = await adapter.openProducer(url, config);
      consumer = await adapter.openConsumer(url, config, handle);
    }
  },
  produce,
  enqueueOne: ({ n }) => producer.one(payloadOf(n, 100, nowMs())),
  stopProducing() {
    progress.stopped = true;
  },
  startPickups() {
    latencies = [];
  },
  endPickups() {
    const taken = latencies;
    latencies = null;
    return taken;
  },
  pickupHere,
  enqueueSteadily,
  duplicates: () => duplicates,
  cpu() {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  },
  async close() {
    await consumer?.close();
    report();
    await producer?.close();
  },
};

process.on("message", async ({ id, verb, argument }) => {
  if (verb === "consumed") {
    progress.consumed = argument;
    return;
  }
  try {
    process.send({ id, result: await verbs[verb](argument ?? {}) });
  } catch (error) {
    process.send({ id, error: error?.stack ?? String(error) });
  }
});
process.on("disconnect", () => process.exit());
process.on("SIGINT", () => {}); // the parent decides

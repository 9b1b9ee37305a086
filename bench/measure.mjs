// The ways to measure one system once. Each opens a stand of its own and answers with a sample.
import { nowMs, sleep } from "./clock.mjs";
import { Stand } from "./stand.mjs";

// As processes that have run for a while: a compiler at work would be a good part of what is measured.
const warmUpJobs = (count) => Math.min(30_000, Math.ceil(count / 2));

export function sampleOf(jobs, startedAt, endedAt, before, after) {
  const per100k = (seconds) => (seconds / jobs) * 100_000;
  const used = (what) => (before[what] === null ? null : per100k(after[what] - before[what]));
  const seconds = (endedAt - startedAt) / 1000;
  return {
    jobs,
    seconds: Number(seconds.toFixed(3)),
    jobs_per_second: jobs / seconds,
    node_cpu_s_per_100k: per100k(after.node - before.node),
    server_cpu_s_per_100k: used("server"),
    ...(before.redis === null ? {} : { redis_cpu_s_per_100k: used("redis") }),
  };
}

export async function withStand(lab, system, config, roles, use) {
  const stand = await Stand.open(lab, system, config, roles);
  lab.stands.add(stand);
  try {
    return await use(stand);
  } finally {
    lab.stands.delete(stand);
    await stand.close();
  }
}

export const enqueueOnly = (lab, system, config, count) =>
  withStand(lab, system, config, { workers: 0 }, async (stand) => {
    await stand.produce({ count: warmUpJobs(count) });
    await stand.calm({ analyze: config.analyze });
    const before = await stand.cpu();
    const startedAt = nowMs();
    const endedAt = await stand.produce({ count });
    return sampleOf(count, startedAt, endedAt, before, await stand.cpu());
  });

// A backlog is loaded in bulk, then a worker arrives. Timed from its first job to the last, settled.
export const drain = (lab, system, config, count) =>
  withStand(lab, system, config, { workers: 0 }, async (stand) => {
    await stand.produce({ count, bulk: true });
    await stand.calm();
    const before = await stand.cpu();
    await stand.addWorker();
    const handledAt = await stand.handledBy(count);
    const endedAt = Math.max(handledAt, (await stand.settled()) ?? 0);
    return sampleOf(count, stand.counts[0].firstAt, endedAt, before, await stand.cpu());
  });

// With `samples`, their pickup latency on the idle queue is measured before.
export const endToEnd = (lab, system, config, count, { workers = 1, bytes, samples = 0 } = {}) =>
  withStand(lab, system, config, { workers }, async (stand) => {
    const warmUp = warmUpJobs(count);
    await stand.produce({ count: warmUp, bytes });
    await stand.handledBy(warmUp);
    await stand.settled();
    const latencies = samples > 0 ? { pickups: await pickups(stand, samples) } : {};
    await stand.settled();
    await stand.calm({ analyze: config.analyze });
    const before = await stand.cpu();
    const startedAt = nowMs();
    const produced = stand.produce({ count, bytes });
    const [handledAt] = await Promise.all([stand.handledBy(warmUp + count), produced]);
    const endedAt = Math.max(handledAt, (await stand.settled()) ?? 0);
    return { ...sampleOf(count, startedAt, endedAt, before, await stand.cpu()), ...latencies };
  });

// Producing (in bulk, so that the producer keeps ahead) and consuming while the backlog keeps its depth. The
// stand may be used again afterwards.
export async function steady(stand, count, { depth, warmUp, bytes, during = async () => {} }) {
  const missing = depth - (stand.next - stand.handled);
  if (missing > 0) await stand.produce({ count: missing, bytes, bulk: true });
  await stand.calm();
  const release = await during(stand);
  await stand.addWorker();
  const unwatch = stand.feedBack();
  const producing = stand.produce({ depth: 2000, bytes, bulk: true });
  const failed = producing.then(() => new Promise(() => {}));
  await Promise.race([stand.handledBy(stand.handled + warmUp), failed]);
  const before = await stand.cpu();
  const first = stand.mark();
  await Promise.race([stand.handledBy(first.handled + count), failed]);
  const last = stand.mark();
  const after = await stand.cpu();
  await stand.producer.call("stopProducing");
  await producing;
  unwatch();
  await stand.removeWorkers();
  await release?.();
  const sample = sampleOf(last.handled - first.handled, first.at, last.at, before, after);
  return { ...sample, waiting_after: stand.next - stand.handled };
}

// One job at a time on an idle queue, from the call of enqueue to the start of the handler. The stand is opened and
// warmed up when it is first measured, and stays: between a few samples here, others take theirs.
export function idleStand(lab, system, config, { local, warmUp }) {
  let stand = null;
  const take = (samples) =>
    local ? stand.producer.call("pickupHere", { samples }) : pickups(stand, samples);
  const close = async () => {
    if (stand === null) return;
    lab.stands.delete(stand);
    await stand.close();
    stand = null;
  };
  const open = async () => {
    stand = await Stand.open(lab, system, config, { local });
    lab.stands.add(stand);
    try {
      await take(warmUp);
    } catch (error) {
      await close();
      throw error;
    }
  };
  return {
    async measure(samples) {
      if (stand === null) await open();
      return { jobs: samples, pickups: await take(samples) };
    },
    close,
  };
}

async function pickups(stand, samples) {
  await Promise.all(stand.workers.map((worker) => worker.call("startPickups")));
  for (let n = 0; n < samples; n++) {
    await sleep(4 + Math.random() * 6);
    const pickedUp = new Promise((resolve) => {
      stand.onPickup = resolve;
    });
    await Promise.all([stand.producer.call("enqueueOne", { n }), pickedUp]);
  }
  const each = await Promise.all(stand.workers.map((worker) => worker.call("endPickups")));
  return each.flat();
}

// How long enqueue takes at a steady rate, whatever `disturb` does meanwhile; every job is handled in the end.
export const enqueueSteadily = (lab, system, config, count, { perSecond, workers, disturb }) =>
  withStand(lab, system, config, { workers }, async (stand) => {
    const warmUp = warmUpJobs(count);
    await stand.produce({ count: warmUp });
    await stand.handledBy(warmUp);
    await stand.settled();
    await stand.calm({ analyze: config.analyze });
    const argument = { first: warmUp, count, perSecond };
    const startedAt = nowMs();
    const [enqueues] = await Promise.all([
      stand.producer.call("enqueueSteadily", argument),
      disturb(stand, (count / perSecond) * 1000),
    ]);
    const handledAt = await stand.handledBy(warmUp + count);
    const jobs_per_second = (count / (handledAt - startedAt)) * 1000;
    return { jobs: count, jobs_per_second, enqueues };
  });

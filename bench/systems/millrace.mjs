import { defineJob, Millrace } from "../dist/index.js";

const counts = { enqueue: 200_000, drain: 200_000, end_to_end: 200_000 };

export const modes = {
  single: [{ label: "enqueue, 200 in flight, concurrency 200", counts, concurrency: 200 }],
  bulk: [
    {
      label: "enqueueMany by 1,000, concurrency 1,000",
      counts,
      concurrency: 1000,
      batch: 1000,
      bulkInFlight: 1,
    },
  ],
  idle: [{ label: "enqueue", concurrency: 200 }],
  dispatch: [
    { label: "direct", counts, concurrency: 50 },
    { label: "brokered", counts, concurrency: 50, broker: "redis" },
  ],
};

const jobOf = (handle) =>
  defineJob({ type: "bench", queue: "bench", run: ({ payload }) => handle(payload) });
// Whatever the environment says about Redis.
const connect = (url, { redisUrl }) =>
  Millrace.connect({
    databaseUrl: url,
    schema: "millrace",
    logLevel: "silent",
    migrate: true,
    useRedis: redisUrl !== undefined,
    redisUrl,
    redisUrlHigh: redisUrl,
    redisUrlLow: redisUrl,
  });

export async function migrate(url) {
  const millrace = await connect(url, {});
  await millrace.stop();
}

const producing = (millrace, job) => ({
  one: (payload) => millrace.enqueue(job, payload),
  many: (payloads) => millrace.enqueueMany(job, payloads),
  close: () => millrace.stop(),
});

export async function openProducer(url, config) {
  return producing(
    await connect(url, config),
    jobOf(() => {}),
  );
}

export async function openConsumer(url, config, handle) {
  const { concurrency } = config;
  const millrace = await connect(url, config);
  await millrace.work([jobOf(handle)], { concurrency });
  return { close: () => millrace.stop() };
}

// One Millrace for both, as an application would have it: an idle worker may be handed a fresh job directly.
export async function openLocal(url, config, handle) {
  const { concurrency } = config;
  const millrace = await connect(url, config);
  const job = jobOf(handle);
  await millrace.work([job], { concurrency });
  return producing(millrace, job);
}

export async function isSettled(client) {
  const { rows } = await client.query("select not exists (select from millrace.job) as settled");
  return rows[0].settled;
}

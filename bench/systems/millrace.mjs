import { defineJob, Millrace } from "../dist/index.js";

const counts = { enqueue: 200_000, drain: 200_000, end_to_end: 100_000 };

export const modes = {
  single: [{ label: "enqueue, 200 in flight, concurrency 200", counts, concurrency: 200 }],
  bulk: [
    {
      label: "enqueueMany by 1,000 × 2, concurrency 1,000",
      counts,
      concurrency: 1000,
      batch: 1000,
      bulkInFlight: 2,
    },
  ],
  idle: [
    { label: "enqueue", concurrency: 200 },
    {
      label: "enqueue, waitForCommit",
      concurrency: 200,
      definition: { waitForCommit: true },
      localOnly: true, // elsewhere every run waits for that
    },
  ],
  dispatch: [
    { label: "direct", counts, concurrency: 50 },
    { label: "brokered", counts, concurrency: 50, broker: "redis" },
  ],
};

// What a feature asks of the queue, and of each job. Limits are there and never reached: what is measured is the cost
// of looking, not of waiting.
const features = {
  plain: {},
  tenants: { settings: { fair: false }, options: (n) => ({ tenant: `t${n % 10}` }) },
  fairness: { options: (n) => ({ tenant: `t${n % 10}` }) },
  ordering: { options: (n) => ({ orderingKey: `k${n % 5_000}` }) },
  concurrency: { settings: { concurrency: 1_000_000 } },
  limit_key: { settings: { keyConcurrency: 1_000 }, options: (n) => ({ limitKey: `k${n % 100}` }) },
  throttle: { settings: { throttle: { limit: 1_000_000_000, windowMs: 1_000 } } },
  priorities: { options: (n) => ({ priority: labels[n % 3] }) },
  ageing: {
    settings: { ageingStepMs: 1_000 },
    options: (n) => ({ priority: labels[n % 3] }),
  },
  rate_limit: { settings: { rateLimit: { limit: 1_000_000_000, windowMs: 1_000 } } },
  capacity: { settings: { capacity: 1_000_000_000 } },
};
const labels = ["high", "normal", "low"];

modes.features = Object.keys(features).map((feature) => ({
  label: feature,
  counts,
  concurrency: 200,
  feature,
}));

async function useFeature(millrace, { feature = "plain" }) {
  const { settings } = features[feature];
  if (settings !== undefined) await millrace.configureQueue("bench", settings);
}

const jobOf = (handle, definition = {}) =>
  defineJob({
    ...definition,
    type: "bench",
    queue: "bench",
    run: ({ payload }) => handle(payload),
  });
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

function producing(millrace, job, { feature = "plain" }) {
  const { options } = features[feature];
  let sent = 0;
  return {
    one:
      options === undefined
        ? (payload) => millrace.enqueue(job, payload)
        : (payload) => millrace.enqueue(job, payload, options(sent++)),
    many: (payloads) => millrace.enqueueMany(job, payloads, options && (() => options(sent++))),
    close: () => millrace.stop(),
  };
}

export async function openProducer(url, config) {
  const millrace = await connect(url, config);
  await useFeature(millrace, config);
  return producing(
    millrace,
    jobOf(() => {}),
    config,
  );
}

export async function openConsumer(url, config, handle) {
  const { concurrency } = config;
  const millrace = await connect(url, config);
  await useFeature(millrace, config);
  await millrace.work([jobOf(handle)], { concurrency });
  return { close: () => millrace.stop() };
}

// One Millrace for both, as an application would have it: an idle worker may begin a fresh job at once.
export async function openLocal(url, config, handle) {
  const { concurrency } = config;
  const millrace = await connect(url, config);
  const job = jobOf(handle, config.definition);
  await millrace.work([job], { concurrency });
  return producing(millrace, job, config);
}

export async function isSettled(client) {
  const { rows } = await client.query("select not exists (select from millrace.job) as settled");
  return rows[0].settled;
}

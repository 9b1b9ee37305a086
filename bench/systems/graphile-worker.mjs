import { Logger, makeWorkerUtils, run } from "graphile-worker";

const silent = new Logger(() => () => {});
const oneByOne = { concurrentJobs: 200, maxPoolSize: 10 };
// As in graphile-worker's own performance test: jobs fetched and completed in batches.
const batched = {
  concurrentJobs: 200,
  maxPoolSize: 10,
  localQueue: { size: 500 },
  completeJobBatchDelay: 0,
  failJobBatchDelay: 0,
};
// Statistics of an empty table make its plans 20 × slower; without any it is fast.
const analyze = false;
const counts = { enqueue: 8_000, drain: 60_000, end_to_end: 6_000 };

export const modes = {
  single: [
    {
      label: "addJob, 200 in flight, concurrency 200, localQueue 500, batched completion",
      counts,
      worker: batched,
      pool: 5,
      analyze,
    },
    {
      label: "addJob, 200 in flight, concurrency 200, one by one",
      counts: { ...counts, drain: 6_000, end_to_end: 3_000 },
      worker: oneByOne,
      slower: true,
      pool: 5,
      analyze,
    },
  ],
  bulk: [
    {
      label: "addJobs by 1,000 × 2, localQueue 500, batched completion",
      counts: { enqueue: 100_000, drain: 60_000, end_to_end: 60_000 },
      worker: batched,
      pool: 5,
      analyze,
      batch: 1000,
      bulkInFlight: 2,
    },
  ],
  idle: [{ label: "addJob", worker: { ...oneByOne, concurrentJobs: 10 }, pool: 5 }],
};

export async function migrate(url) {
  const utils = await makeWorkerUtils({ connectionString: url, logger: silent });
  await utils.migrate();
  await utils.release();
}

export async function openProducer(url, config) {
  const utils = await makeWorkerUtils({
    connectionString: url,
    logger: silent,
    maxPoolSize: config.pool,
  });
  return {
    one: (payload) => utils.addJob("bench", payload),
    many: (payloads) =>
      utils.addJobs(payloads.map((payload) => ({ identifier: "bench", payload }))),
    close: () => utils.release(),
  };
}

export async function openConsumer(url, config, handle) {
  const runner = await run({
    preset: { worker: { connectionString: url, logger: silent, ...config.worker } },
    noHandleSignals: true,
    taskList: { bench: async (payload) => handle(payload) },
  });
  return { close: () => runner.stop() };
}

import { PgBoss } from "pg-boss";

const queue = "bench";
// pg-boss at its best fetches full batches without a pause. NOTIFY on every send costs more than it brings
// while jobs flow, and is what an idle queue needs: so both are here.
const poll = { pollingIntervalSeconds: 0.5, notifyPollingIntervalSeconds: 0.5 };
const batched = { ...poll, batchSize: 500, localConcurrency: 4, burstWhenBatchFull: true };
const oneByOne = { ...poll, batchSize: 1, localConcurrency: 200 };
const counts = { enqueue: 6_000, drain: 60_000, end_to_end: 8_000 };

export const modes = {
  single: [
    {
      label: "send, 200 in flight, batch 500 × 4, polling",
      counts,
      worker: batched,
      pool: 10,
      notify: false,
    },
    {
      label: "send, 200 in flight, concurrency 200 one by one, notify",
      counts: { ...counts, drain: 2_000, end_to_end: 2_000 },
      worker: oneByOne,
      slower: true,
      pool: 10,
      notify: true,
    },
  ],
  bulk: [
    {
      label: "insert by 1,000 × 2, batch 500 × 4, notify",
      counts: { enqueue: 80_000, drain: 60_000, end_to_end: 60_000 },
      worker: batched,
      pool: 10,
      notify: true,
      batch: 1000,
      bulkInFlight: 2,
    },
  ],
  idle: [{ label: "send, notify", worker: { ...poll, batchSize: 1 }, pool: 10, notify: true }],
};

async function connect(url, extra) {
  const boss = new PgBoss({
    connectionString: url,
    max: 10,
    supervise: false,
    schedule: false,
    ...extra,
  });
  boss.on("error", () => {});
  await boss.start();
  return boss;
}

const stop = (boss) => boss.stop({ graceful: false, close: true });

export async function migrate(url, { notify }) {
  const boss = await connect(url, {});
  await boss.createQueue(queue, { notify });
  await stop(boss);
}

export async function openProducer(url, config) {
  const boss = await connect(url, { max: config.pool });
  return {
    one: (payload) => boss.send(queue, payload),
    many: (payloads) =>
      boss.insert(
        queue,
        payloads.map((data) => ({ data })),
      ),
    close: () => stop(boss),
  };
}

export async function openConsumer(url, config, handle) {
  const boss = await connect(url, { useListenNotify: config.notify });
  await boss.work(queue, config.worker, async (jobs) => {
    for (const job of jobs) handle(job.data);
  });
  return { close: () => stop(boss) };
}

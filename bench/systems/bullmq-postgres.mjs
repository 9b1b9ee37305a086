import { createPostgresBackend, Queue, runMigrations, Worker } from "bullmq";
import pg from "pg";

const counts = { enqueue: 8_000, drain: 4_000, end_to_end: 3_000 };
const worker = { concurrency: 200 };

export const modes = {
  single: [{ label: "add, 200 in flight, concurrency 200, pool 10", counts, worker, pool: 10 }],
  bulk: [
    {
      label: "addBulk by 1,000 × 2, concurrency 200, pool 10",
      counts: { ...counts, enqueue: 40_000 },
      worker,
      pool: 10,
      batch: 1000,
      bulkInFlight: 2,
    },
  ],
  idle: [{ label: "add", worker, pool: 10 }],
};

const connection = (url, config) => ({ connectionString: url, max: config.pool });
const defaultJobOptions = { removeOnComplete: true, removeOnFail: true };

export async function migrate(url) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await runMigrations(client);
  await client.end();
}

export async function openProducer(url, config) {
  const queue = new Queue(
    "bench",
    { connection: connection(url, config), defaultJobOptions },
    createPostgresBackend,
  );
  await queue.waitUntilReady();
  return {
    one: (payload) => queue.add("bench", payload),
    many: (payloads) => queue.addBulk(payloads.map((data) => ({ name: "bench", data }))),
    close: () => queue.close(),
  };
}

export async function openConsumer(url, config, handle) {
  const consumer = new Worker(
    "bench",
    async (job) => handle(job.data),
    { connection: connection(url, config), ...config.worker },
    createPostgresBackend,
  );
  await consumer.waitUntilReady();
  return { close: () => consumer.close(true) };
}

// With node-redis, which BullMQ drives a little faster than ioredis.
import { Queue, Worker } from "bullmq";
import { createClient } from "redis";

const worker = { concurrency: 200 };
const counts = { enqueue: 60_000, drain: 40_000, end_to_end: 40_000 };
const variants = [
  { persistence: "AOF every second", server: "redis-aof" },
  { persistence: "no persistence", server: "redis" },
];

export const modes = {
  single: variants.map(({ persistence, server }) => ({
    label: `add, 200 in flight, concurrency 200, ${persistence}`,
    server,
    counts,
    worker,
  })),
  bulk: variants.map(({ persistence, server }) => ({
    label: `addBulk by 200 × 4, concurrency 200, ${persistence}`,
    server,
    counts,
    worker,
    batch: 200,
    bulkInFlight: 4,
  })),
  idle: variants.map(({ persistence, server }) => ({
    label: `add, ${persistence}`,
    server,
    worker,
  })),
};

const connection = (url) => createClient({ url }).on("error", () => {});
const defaultJobOptions = { removeOnComplete: true, removeOnFail: true };

export async function migrate() {}

export async function openProducer(url) {
  const queue = new Queue("bench", { connection: connection(url), defaultJobOptions });
  await queue.waitUntilReady();
  return {
    one: (payload) => queue.add("bench", payload),
    many: (payloads) => queue.addBulk(payloads.map((data) => ({ name: "bench", data }))),
    close: () => queue.close(),
  };
}

export async function openConsumer(url, config, handle) {
  const consumer = new Worker("bench", async (job) => handle(job.data), {
    connection: connection(url),
    ...config.worker,
  });
  await consumer.waitUntilReady();
  return { close: () => consumer.close(true) };
}

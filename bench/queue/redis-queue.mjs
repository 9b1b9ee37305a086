// RedisQueue and QueueWorker in the shape in which the bench drives every system.
import { QueueWorker, RedisQueue } from "../dist/queue.js";

const counts = { end_to_end: 200_000 };

export const modes = {
  single: [
    { label: "enqueue, 200 in flight, concurrency 200", server: "redis", counts, concurrency: 200 },
  ],
  bulk: [{ label: "enqueueMany by 1,000", server: "redis", batch: 1000, bulkInFlight: 1 }],
  idle: [{ label: "enqueue", server: "redis", concurrency: 200 }],
};

const connect = (url) => RedisQueue.connect({ url, name: "bench" });

export async function migrate() {}

export async function openProducer(url) {
  const queue = await connect(url);
  return {
    one: (payload) => queue.enqueue(payload),
    many: (payloads) => queue.enqueueMany(payloads.map((job) => ({ job }))),
    close: () => queue.close(),
  };
}

export async function openConsumer(url, { concurrency }, handle) {
  const queue = await connect(url);
  const worker = new QueueWorker({ queue, concurrency, handler: ({ job }) => handle(job) });
  await worker.start();
  return {
    close: async () => {
      await worker.stop();
      await queue.close();
    },
  };
}

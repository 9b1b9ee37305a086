// Every system has the same shape:
//   modes       configurations for `single` (one by one) and `bulk`; the first of each is the leading one
//   migrate     prepares an empty database
//   openProducer → { one(payload), many(payloads), close() }
//   openConsumer(url, config, handle) → { close() }, where handle(payload) counts
//   openLocal   optional: producer and worker in one process, if that is more than both side by side
//   isSettled   optional: whether nothing is left in the database
export const systemNames = [
  "millrace",
  "raw",
  "bullmq-redis",
  "bullmq-postgres",
  "graphile-worker",
  "pg-boss",
];

const loaded = new Map();

export function adapterOf(name) {
  if (!loaded.has(name)) loaded.set(name, import(`./${name}.mjs`));
  return loaded.get(name);
}

// What callers without types may say to the core: refused with a code, and nothing is stored.

import { expect, test } from "vitest";
import { defineJob, Millrace } from "../../src/index.ts";
import { createTestMillrace } from "../../src/testing.ts";
import { newQueue, refusal, useMillrace } from "../support/instance.ts";

const instances = useMillrace();
const id = "00000000-0000-7000-8000-000000000000";
const job = defineJob({ type: "refused", queue: newQueue(), run: () => {} });
const nul = "a\u0000b";
const tx = { query: async () => ({ rows: [] }) };

// biome-ignore lint/suspicious/noExplicitAny: what is not allowed is the point.
type Anything = any;
type Call = (millrace: Anything) => unknown;

const calls: readonly Call[] = [
  (m) => m.deadLetters({}, -1),
  (m) => m.deadLetters({}, Number.NaN),
  (m) => m.deadLetters({}, "x"),
  (m) => m.deadLetters({ ids: "x" }),
  (m) => m.deadLetters({ tenants: "x" }),
  (m) => m.deadLetters({ queue: nul }),
  (m) => m.deadLetters(null),
  (m) => m.findByKey(nul),
  (m) => m.findByKey("k", nul),
  (m) => m.findByKey(5),
  (m) => m.cancel(id, nul),
  (m) => m.delete(id, "a reason", nul),
  (m) => m.discard(id, "a reason", 5),
  (m) => m.pauseQueue(nul),
  (m) => m.resumeQueue(undefined),
  (m) => m.configureQueue(job.queue, null),
  (m) => m.enqueue(job, 1, { tx: null }),
  (m) => m.enqueue(job, 1, { tx: {} }),
  (m) => m.enqueue(job, 1, { delay: 5 }),
  (m) => m.enqueue(job, 1, null),
  (m) => m.enqueueMany(job, [1], { keys: "k" }),
  (m) => m.enqueueMany(job, [1, 2], (_: unknown, i: number) => (i === 0 ? { tx } : {})),
  (m) => m.enqueueMany(job, [1, 2], () => ({ tx: { ...tx } })),
  (m) => m.work(undefined),
  (m) => m.work([null]),
  (m) => m.work([job], null),
  (m) => m.work([job], { name: "x".repeat(10_000) }),
  (m) => m.work([job], { name: nul }),
  (m) => m.work([job], { queues: "hgf" }),
  (m) => m.work([job], { defaultHandler: "x" }),
  (m) => m.work([job], { concurency: 5 }),
  (m) => m.result(id, { timeoutMs: Number.NaN }),
  (m) => m.result(id, { timeout: 5 }),
  (m) => m.waitFor(id, null),
  () => Millrace.connect(null as Anything),
  () => Millrace.connect({ categories: 5 } as Anything),
  () => Millrace.connect({ categories: [null] } as Anything),
  () => Millrace.connect({ databaseURL: instances.url } as Anything),
  () => Millrace.connect({ random: 5 } as Anything),
  () => Millrace.connect({ schema: "information_schema" }),
  () => Millrace.connect({ schema: "pg_mine" }),
  () => createTestMillrace({ databaseUrl: instances.url, leaseMS: 5 } as Anything),
];

test.each(calls.map((call) => [String(call).slice(0, 80), call] as const))(
  "%s",
  async (_, call) => {
    const { millrace } = instances;
    const attempt = (async () => call(millrace))();
    expect((await refusal(attempt)).code).toBe("OPTION_INVALID");
    expect(await instances.query("select from millrace.job")).toHaveLength(0);
  },
);

test("a match or a drain with a field that there is not is refused, and says which is meant", async () => {
  await using test = await createTestMillrace({ databaseUrl: instances.url });
  const match: Anything = { payloda: { a: 1 } };
  for (const attempt of [
    () => test.assertNotEnqueued(job, match),
    () => test.assertEnqueued(job, { ...match, count: 1 }),
    () => test.enqueued(job, match),
    () => test.drain([job], { advanced: true } as Anything),
    () => test.drain(undefined as Anything),
  ])
    expect((await refusal(attempt())).code).toBe("OPTION_INVALID");
  const error = await refusal(test.assertNotEnqueued(job, match));
  expect(error.message).toContain('Did you mean "payload"?');
});

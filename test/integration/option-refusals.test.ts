// What callers without types may say to the core: refused with a code, and nothing is stored.

import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { loadConfig } from "../../src/config.ts";
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
  (m) => m.configureQueue("", {}),
  (m) => m.configureQueue(job.queue, { throttle: 5 }),
  (m) => m.drainQueue(job.queue, { timeout: 1 }),
  (m) => m.drainQueue(job.queue, 5),
  (m) => m.drainQueue(job.queue, { timeoutMs: -1 }),
  (m) => m.tenants.drain("default", { timeout: 1 }),
  (m) => m.tenants.configure("", {}),
  (m) => m.breaker("b").run(() => 1, { whenUnknown: "x" }),
  (m) => m.breaker("b").run(() => 1, { clasify: () => undefined }),
  (m) => m.breaker("b").run(() => 1, { classify: 5 }),
  (m) => m.breaker("b").run(() => 1, { signal: 5 }),
  (m) => m.enqueue(job, 1, { tx: null }),
  (m) => m.enqueue(job, 1, { tx: {} }),
  (m) => m.enqueue(job, 1, { delay: 5 }),
  (m) => m.enqueue(job, 1, null),
  (m) => m.enqueueMany(job, [1], { keys: "k" }),
  (m) => m.enqueueMany(job, [1, 2], (_: unknown, i: number) => (i === 0 ? { tx } : {})),
  (m) => m.enqueueMany(job, [1, 2], () => ({ tx: { ...tx } })),
  (m) => m.enqueueMany(job, [1, 2], async () => ({ key: "k" })),
  (m) => m.enqueueMany(job, [1], Promise.resolve({ key: "k" })),
  (m) => m.enqueue(job, 1, Promise.resolve({ key: "k" })),
  (m) => m.enqueue(job, 1, new Map([["key", "k"]])),
  (m) => m.enqueue(job, 1, new (class {})()),
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
  (m) => m.result(id, { signal: null }),
  (m) => m.result(id, { signal: {} }),
  (m) => m.result(id, { signal: new AbortController() }),
  (m) => m.waitFor(id, { signal: "x" }),
  () => Millrace.connect(null as Anything),
  () => Millrace.connect({ categories: 5 } as Anything),
  () => Millrace.connect({ categories: [null] } as Anything),
  () => Millrace.connect({ databaseURL: instances.url } as Anything),
  () => Millrace.connect({ random: 5 } as Anything),
  () => Millrace.connect({ payloadLimits: { limitByte: 50 } } as Anything),
  () => Millrace.connect({ schema: "information_schema" }),
  () => Millrace.connect({ schema: "pg_mine" }),
  () => Millrace.connect({ schema: Symbol("mine") } as Anything),
  () => Millrace.connect({ databaseUrl: Symbol("here") } as Anything),
  () => Millrace.connect({ databaseUrl: [instances.url] } as Anything),
  () => createTestMillrace({ databaseUrl: instances.url, leaseMS: 5 } as Anything),
  () => createTestMillrace(3 as Anything),
  () => createTestMillrace(null as Anything),
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

test("says what is allowed, and whose name it is", async () => {
  const { millrace } = instances;
  const said = async (attempt: Promise<unknown>) => (await refusal(attempt)).message;
  const elsewhere = { databaseUrl: "http://u:hunter2@localhost/x" };
  expect(await said(Millrace.connect(elsewhere))).toMatch(/^databaseUrl must begin with postgres/);
  expect(() => loadConfig({}, { DATABASE_URL: "http://x" })).toThrow(/^DATABASE_URL must begin/);
  const configured = (settings: Anything) => said(millrace.configureQueue(job.queue, settings));
  expect(await configured({ throttle: 5 })).toContain("{ limit, windowMs }");
  expect(await configured({ capacity: -1 })).toContain(
    "a whole number from 0 to 2147483647, or null",
  );
  expect(await configured({ fair: 1 })).toBe('"fair" must be true or false.');
  expect(await said(millrace.tenants.configure("", {}))).toContain("A tenant's name");
  expect(await said(millrace.configureQueue("", {}))).toContain("A queue's name");
  const long = "x".repeat(201);
  expect(await said(millrace.pauseQueue(long))).toContain("1 to 200");
  expect(await said(millrace.configureQueue(long, {}))).toContain("1 to 200");
});

test("options are a plain object, of whichever realm; a promise is asked for its await", async () => {
  const { millrace } = instances;
  const said = async (options: Anything) =>
    (await refusal(millrace.enqueue(job, 1, options))).message;
  expect(await said(Promise.resolve({}))).toMatch(/is a promise: an await is missing/);
  expect(await said(new Map())).toMatch(/must be a plain object/);
  const bare = Object.assign(Object.create(null), { key: "bare" });
  for (const options of [bare, runInNewContext("({ key: 'elsewhere' })")])
    await millrace.enqueue(job, 1, options);
  expect(await millrace.findByKey("bare")).not.toBeNull();
  expect(await millrace.findByKey("elsewhere")).not.toBeNull();
});

test("a drain that is refused has paused nothing", async () => {
  const { millrace } = instances;
  const queue = newQueue();
  await millrace.configureQueue(queue, {});
  const wait: Anything = { timeout: 1 };
  expect((await refusal(millrace.drainQueue(queue, wait))).code).toBe("OPTION_INVALID");
  expect((await refusal(millrace.tenants.drain(queue, wait))).code).toBe("OPTION_INVALID");
  expect((await millrace.queues()).find(({ name }) => name === queue)?.paused).toBe(false);
  expect((await millrace.tenants.list()).map(({ name }) => name)).not.toContain(queue);
});

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

test("what names no job and what could match none is refused, where there is a job and where not", async () => {
  await using test = await createTestMillrace({ databaseUrl: instances.url });
  const { assertEnqueued, assertNotEnqueued, drain, enqueued }: Anything = test;
  const attempts = [
    () => drain([null]),
    () => drain([{}]),
    ...[undefined, null, 3, {}].flatMap((one) => [
      () => assertEnqueued(one),
      () => assertNotEnqueued(one),
    ]),
    () => enqueued(3),
    () => enqueued(null),
    ...[null, 3, { state: "nope" }, { delayMs: "0" }, { key: 5 }, { tenant: {} }].flatMap(
      (match) => [
        () => assertEnqueued(job, match),
        () => assertNotEnqueued(job, match),
        () => enqueued(job, match),
      ],
    ),
  ];
  const refuseAll = async () => {
    for (const [i, attempt] of attempts.entries())
      expect([i, (await refusal(attempt())).code]).toEqual([i, "OPTION_INVALID"]);
    const unknown = await refusal(assertNotEnqueued(job, { priority: "nope" }));
    expect(unknown.code).toBe("UNKNOWN_PRIORITY");
  };
  await refuseAll();
  await test.millrace.enqueue(job, 1);
  await refuseAll();
  for (const payload of [async () => false, () => Promise.reject(new Error("later"))])
    expect((await refusal(assertEnqueued(job, { payload }))).code).toBe("OPTION_INVALID");
});

test("options of a test's Millrace are of their type, and virtual time has an end", async () => {
  const test = await createTestMillrace({ databaseUrl: instances.url });
  const drained = (options: Anything) => test.drain([job], options);
  for (const attempt of [
    () => drained({ advance: "x" }),
    () => drained({ throwErrors: 1 }),
    () => drained({ maxRuns: 0 }),
    () => drained({ timeoutMs: -1 }),
    () => drained({ timeoutMs: "x" }),
    () => drained({ concurrency: 0 }),
    () => test.assertEnqueued(job, { count: "x" } as Anything),
    () => test.assertEnqueued(job, { count: 0 }),
    () => test.advance(1e15),
  ])
    expect([String(attempt), (await refusal(attempt())).code]).toEqual([
      String(attempt),
      "OPTION_INVALID",
    ]);
  await test.stop();
  for (const attempt of [
    () => test.enqueued(),
    () => test.assertEnqueued(job),
    () => test.assertNotEnqueued(job),
    () => test.advance(1),
    () => test.drain([job]),
  ])
    expect([String(attempt), (await refusal(attempt())).code]).toEqual([
      String(attempt),
      "STOPPED",
    ]);
});

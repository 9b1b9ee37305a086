import { expect, test } from "vitest";
import { z } from "zod";
import { defineJob, type Rate } from "../../src/index.ts";
import { enqueuedIn, newQueue, refusal, useMillrace } from "../support/instance.ts";
import { until } from "../support/until.ts";

const instances = useMillrace();
/** Nothing flows back while a test runs. */
const slow = (limit: number): Rate => ({ limit, windowMs: 86_400_000 });

async function countPassed(calls: Promise<unknown>[]): Promise<number> {
  const answers = await Promise.allSettled(calls);
  return answers.filter(({ status }) => status === "fulfilled").length;
}

test("a queue's rate is shared by all processes, and says when to come again", async () => {
  const { millrace } = instances;
  const queue = newQueue();
  await millrace.configureQueue(queue, { rateLimit: slow(20) });
  const job = defineJob({ type: "rated", queue });
  const other = await instances.connect();
  const calls = Array.from({ length: 60 }, (_, n) =>
    (n % 2 === 0 ? millrace : other).enqueue(job, { n }),
  );
  expect(await countPassed(calls)).toBe(20);
  const refused = await refusal(millrace.enqueue(job, {}));
  expect(refused.code).toBe("RATE_LIMITED");
  expect(refused.details).toMatchObject({ limit: 20, windowMs: 86_400_000 });
  expect(refused.details.retryAfterMs).toBeGreaterThan(0);
  expect(await enqueuedIn(millrace, queue)).toBe(20);
});

test("a bucket fills again", async () => {
  const { millrace } = instances;
  const queue = newQueue();
  await millrace.configureQueue(queue, { rateLimit: { limit: 2, windowMs: 4_000 } });
  const job = defineJob({ type: "again", queue });
  expect(await countPassed(Array.from({ length: 5 }, () => millrace.enqueue(job, {})))).toBe(2);
  const { details } = await refusal(millrace.enqueue(job, {}));
  expect(details.retryAfterMs).toBeGreaterThan(0);
  await until("it has filled", async () => (await countPassed([millrace.enqueue(job, {})])) === 1);
});

test("each tenant of a queue has a bucket of its own, and a tenant one for all its queues", async () => {
  const { millrace } = instances;
  const [first, second] = [newQueue(), newQueue()];
  await millrace.configureQueue(first, { tenantRateLimit: slow(3) });
  await millrace.tenants.configure("bounded", { rateLimit: slow(2) });
  const one = defineJob({ type: "one", queue: first });
  const two = defineJob({ type: "two", queue: second });
  const sends = (tenant: string, job = one) =>
    countPassed(Array.from({ length: 6 }, () => millrace.enqueue(job, {}, { tenant })));
  expect([await sends("free"), await sends("other")]).toEqual([3, 3]);
  expect(await sends("bounded")).toBe(2);
  expect(await sends("bounded", two)).toBe(0);
  expect(await sends("free", two)).toBe(6);
});

test("a key of the payload has a bucket of its own, and is in no message", async () => {
  const { millrace } = instances;
  const job = defineJob({
    type: "affiliate",
    queue: newQueue(),
    payload: z.object({ affiliate: z.string().optional() }),
    rateLimit: { ...slow(2), key: ({ affiliate }) => affiliate },
  });
  const sends = (affiliate?: string) =>
    countPassed(Array.from({ length: 4 }, () => millrace.enqueue(job, { affiliate })));
  expect([await sends("secret-a"), await sends("secret-b")]).toEqual([2, 2]);
  expect(await sends()).toBe(4);
  const refused = await refusal(millrace.enqueue(job, { affiliate: "secret-a" }));
  expect(refused.message + JSON.stringify(refused.details)).not.toContain("secret");
});

test("a job type may ask to be delayed instead, each job longer than the one before", async () => {
  const { millrace } = instances;
  const queue = newQueue();
  await millrace.configureQueue(queue, { rateLimit: { limit: 2, windowMs: 2_000_000 } });
  const job = defineJob({ type: "patient", queue, whenRateLimited: "delay" });
  const made = await millrace.enqueueMany(job, Array(5).fill({}));
  const jobs = await Promise.all(made.map(({ id }) => millrace.get(id)));
  expect(jobs.map((one) => one?.state)).toEqual([
    "ready",
    "ready",
    "scheduled",
    "scheduled",
    "scheduled",
  ]);
  const waits = jobs
    .slice(2)
    .map((one) => (one?.dueAt?.getTime() ?? 0) - (one?.createdAt.getTime() ?? 0));
  const seconds = waits.map((ms) => Math.round(ms / 100_000));
  expect(seconds).toEqual([10, 20, 30]);
});

test("a bulk passes as a whole or not at all", async () => {
  const { millrace } = instances;
  const queue = newQueue();
  await millrace.configureQueue(queue, { rateLimit: slow(5) });
  const job = defineJob({ type: "bulk", queue });
  expect((await refusal(millrace.enqueueMany(job, Array(6).fill({})))).code).toBe("RATE_LIMITED");
  await millrace.enqueueMany(job, Array(4).fill({}));
  expect((await refusal(millrace.enqueueMany(job, Array(2).fill({})))).code).toBe("RATE_LIMITED");
  await millrace.enqueue(job, {});
  expect(await enqueuedIn(millrace, queue)).toBe(5);
});

test("a request that was accepted before is answered as it was then", async () => {
  const { millrace } = instances;
  const queue = newQueue();
  await millrace.configureQueue(queue, { rateLimit: slow(1) });
  const job = defineJob({ type: "repeat", queue });
  const first = await millrace.enqueue(job, { n: 1 }, { key: `${queue}-1` });
  const again = await millrace.enqueue(job, { n: 1 }, { key: `${queue}-1` });
  expect(again).toEqual({ id: first.id, existing: true });
  expect((await refusal(millrace.enqueue(job, { n: 2 }, { key: `${queue}-2` }))).code).toBe(
    "RATE_LIMITED",
  );
});

test("what is not stored costs no token: repeats, conflicts, taken references, full queues", async () => {
  const { millrace } = instances;
  const queue = newQueue();
  const rateLimit = slow(10);
  await millrace.configureQueue(queue, { rateLimit, enforceUniqueReference: true });
  const job = defineJob({ type: "unstored", queue });
  const named = { key: `${queue}-key`, reference: `${queue}-ref` };
  const first = await millrace.enqueue(job, { n: 1 }, named);
  const again = { id: first.id, existing: true };
  expect(await millrace.enqueue(job, { n: 1 }, named)).toEqual(again);
  expect(await millrace.enqueueMany(job, [{ n: 1 }, { n: 1 }], named)).toEqual([again, again]);
  const codeOf = async (call: Promise<unknown>) => (await refusal(call)).code;
  expect(await codeOf(millrace.enqueue(job, { n: 2 }, named))).toBe("IDEMPOTENCY_CONFLICT");
  const { reference } = named;
  expect(await codeOf(millrace.enqueue(job, {}, { reference }))).toBe("REFERENCE_TAKEN");
  await millrace.configureQueue(queue, { capacity: 1 });
  expect(await codeOf(millrace.enqueueMany(job, [{}, {}]))).toBe("QUEUE_FULL");
  for (let n = 0; n < 10; n++) expect(await codeOf(millrace.enqueue(job, {}))).toBe("QUEUE_FULL");
  await millrace.configureQueue(queue, { capacity: null });
  for (let n = 0; n < 9; n++) await millrace.enqueue(job, {});
  expect(await codeOf(millrace.enqueue(job, {}))).toBe("RATE_LIMITED");
  expect(await enqueuedIn(millrace, queue)).toBe(10);
});

test("tokens that one process gives back are there for another that was refused", async () => {
  const { millrace } = instances;
  const queue = newQueue();
  await millrace.configureQueue(queue, { rateLimit: slow(1) });
  const job = defineJob({ type: "returned", queue });
  const other = await instances.connect();
  const flow = millrace.store.flow;
  const { id } = (await millrace.queueCache.find("default", queue)) ?? { id: 0 };
  const key = `queue:${id}`;
  await flow.takeTokens([{ key, rate: slow(1), wanted: 1, owed: 0 }]);
  expect((await refusal(other.enqueue(job, {}))).code).toBe("RATE_LIMITED");
  await flow.giveBackTokens(new Map([[key, 1]]));
  await until("it asks again", async () => (await countPassed([other.enqueue(job, {})])) === 1);
});

test("a key that cannot be stored is refused, and nobody else with it", async () => {
  const { millrace } = instances;
  const queue = newQueue();
  const keyed = (key: string) =>
    defineJob({ type: "unstorable", queue, rateLimit: { ...slow(100), key: () => key } });
  const keys = ["fine", "a\u0000b", "half \ud83d", "", "x".repeat(501), "whole \u{1f600}"];
  const codes = keys.map((key) =>
    millrace.enqueue(keyed(key), {}).then(
      () => "OK",
      ({ code }) => code,
    ),
  );
  const bad = "OPTION_INVALID";
  expect(await Promise.all(codes)).toEqual(["OK", bad, bad, bad, bad, "OK"]);
});

test("inside the caller's transaction no bucket is locked", async () => {
  const { millrace } = instances;
  const queue = newQueue();
  await millrace.configureQueue(queue, { rateLimit: slow(10) });
  const job = defineJob({ type: "within", queue });
  const { default: pg } = await import("pg");
  const client = new pg.Client({ connectionString: instances.url });
  await client.connect();
  await client.query("begin");
  await millrace.enqueue(job, {}, { tx: client });
  // Would wait for ever if the open transaction held the bucket.
  await millrace.enqueue(job, {});
  await client.query("rollback");
  await client.end();
  expect(await enqueuedIn(millrace, queue)).toBe(1);
});

test("a job type finds priority and delay in the payload, and the caller has the last word", async () => {
  const { millrace } = instances;
  const job = defineJob({
    type: "scored",
    queue: newQueue(),
    payload: z.object({ risk: z.number() }),
    priority: ({ risk }) => (risk > 0.8 ? "high" : risk < 0.2 ? "low" : undefined),
    delayMs: ({ risk }) => (risk < 0.2 ? 60_000 : undefined),
  });
  const found = async (risk: number, options = {}) => {
    const { id } = await millrace.enqueue(job, { risk }, options);
    const made = await millrace.get(id);
    return [made?.weight, made?.state, made?.meta.priority];
  };
  expect(await found(0.9)).toEqual([0, "ready", "high"]);
  expect(await found(0.5)).toEqual([5, "ready", undefined]);
  expect(await found(0.1)).toEqual([10, "scheduled", "low"]);
  expect(await found(0.1, { priority: "normal", delayMs: 0 })).toEqual([5, "ready", "normal"]);
});

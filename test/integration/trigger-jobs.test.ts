// What the jobs of a trigger carry, and what is said about a trigger by leaving a field undefined.

import { expect, test } from "vitest";
import { z } from "zod";
import { defineJob, type Job, type TriggerChanges } from "../../src/index.ts";
import { newQueue, refusal, useMillrace } from "../support/instance.ts";

const instances = useMillrace({ triggerMs: 3_600_000 });
const yearly = "0 0 1 1 *";

/** What a definition decides about its jobs. */
const decided = ({ type, queue, weight, maxAttempts, meta, ...job }: Job) => ({
  ...{ type, queue, weight, maxAttempts },
  ...{ priority: meta.priority, category: meta.category, payloadVersion: meta.payloadVersion },
  livesMs: job.expiresAt === null ? null : job.expiresAt.getTime() - job.createdAt.getTime(),
});

const versioned = (queue: string) =>
  defineJob({
    ...{ type: "greet", queue, priority: "high", maxAttempts: 2, maxRuntimeMs: 7_777 },
    ...{ expiresInMs: 600_000, payloadVersion: "2.0" },
    payload: z.object({ name: z.string(), queue_item_ids: z.array(z.string()).optional() }),
    upcasters: { "1.0": { to: "2.0", up: () => ({ name: "lifted" }) } },
    run: ({ payload }) => payload.name,
  });

test("a job that a time trigger makes is what an enqueue of its definition makes", async () => {
  const { millrace } = instances;
  const job = versioned(newQueue());
  const made = await millrace.triggers.create({
    ...{ name: job.queue, type: "TIME", cron: "* * * * * *", job, payload: { name: "Ann" } },
  });
  await instances.work([job]);
  const { jobIds } = await millrace.events.once("trigger.fired", ({ id }) => id === made.id);
  const fired = await millrace.waitFor(jobIds[0] ?? "");
  const enqueued = await millrace.waitFor((await millrace.enqueue(job, { name: "Ann" })).id);
  expect(fired.result).toBe("Ann");
  expect(decided(fired)).toEqual(decided(enqueued));
  await millrace.triggers.delete(made.id);
});

test("so is one that a queue trigger makes, also after the payload alone was changed", async () => {
  const { millrace } = instances;
  const [job, item] = [versioned(newQueue()), defineJob({ type: "item", queue: newQueue() })];
  const made = await millrace.triggers.create({
    ...{ name: job.queue, type: "QUEUE", queue: item.queue, onArrival: true },
    ...{ job, payload: { name: "Ann" } },
  });
  const changed = await millrace.triggers.update(made.id, { payload: { name: "Bob" } });
  expect(changed).toMatchObject({ payloadVersion: "2.0", expiresInMs: 600_000 });
  await instances.work([defineJob({ type: "other", queue: newQueue(), run: () => {} })]);
  const fired = millrace.events.once("trigger.fired", ({ id }) => id === made.id);
  await millrace.enqueue(item, {});
  const waiting = await millrace.get((await fired).jobIds[0] ?? "");
  const beside = await millrace.get((await millrace.enqueue(job, { name: "Ann" })).id);
  if (waiting === null || beside === null) throw new Error("both are there");
  expect(decided(waiting)).toEqual(decided(beside));
  expect(decided(waiting)).toMatchObject({ payloadVersion: "2.0", livesMs: 600_000 });
  const limits = await instances.query(
    "select max_runtime_ms from millrace.job where id in ($1, $2)",
    [waiting.id, beside.id],
  );
  expect(limits).toEqual([{ max_runtime_ms: 7_777 }, { max_runtime_ms: 7_777 }]);
  await instances.work([job]);
  expect(await millrace.result(waiting.id)).toBe("Bob");
  await millrace.triggers.delete(made.id);
});

test("version and expiry may be said without a definition; another type begins without a version", async () => {
  const { triggers } = instances.millrace;
  const common = { name: newQueue(), type: "TIME", cron: yearly, jobType: "x" } as const;
  const made = await triggers.create({ ...common, payloadVersion: "3.1", expiresInMs: 5_000 });
  expect(made).toMatchObject({ payloadVersion: "3.1", expiresInMs: 5_000 });
  const changed = await triggers.update(made.id, { jobType: "y" });
  expect(changed).toMatchObject({ payloadVersion: null, expiresInMs: 5_000 });
  const wrong = triggers.update(made.id, { payloadVersion: "new" });
  expect((await refusal(wrong)).code).toBe("TRIGGER_INVALID");
  await triggers.delete(made.id);
});

const full = (queue: string) => defineJob({ type: "a", queue, maxAttempts: 2, priority: "high" });
const ofBoth = ["name", "enabled", "job", "jobType", "jobQueue", "priority", "maxAttempts"];
const ofJobs = ["maxRuntimeMs", "expiresInMs", "payload", "payloadVersion"];
const ofTime = ["cron", "timeZone", "missedSlots", "maxCatchUp"];
const ofQueue = ["queue", "batchSize", "pollingIntervalMs", "onArrival"];
const undefinedIn = (fields: readonly string[]): TriggerChanges =>
  Object.fromEntries(fields.map((field) => [field, undefined]));

test("a field that is undefined is not named: an update leaves it as it is", async () => {
  const { triggers } = instances.millrace;
  const job = full(newQueue());
  const common = { name: job.queue, job, payload: { a: 1 }, payloadVersion: "2.0", enabled: true };
  const time = await triggers.create({
    ...{ ...common, type: "TIME", cron: yearly, timeZone: "Europe/Berlin" },
    ...{ missedSlots: "all", maxCatchUp: 7, maxRuntimeMs: 5_000, expiresInMs: 6_000 },
  });
  const items = await triggers.create({
    ...{ ...common, name: `${job.queue}-items`, type: "QUEUE", queue: newQueue() },
    ...{ batchSize: 5, pollingIntervalMs: 9_000, onArrival: true },
  });
  for (const [made, own] of [[time, ofTime] as const, [items, ofQueue] as const]) {
    const { updatedAt: _, nextFireAt: __, ...before } = made;
    for (const field of [...ofBoth, ...ofJobs, ...own])
      expect(await triggers.update(made.id, undefinedIn([field])), field).toMatchObject(before);
    await triggers.delete(made.id);
  }
});

test("a field that is undefined is not named: a trigger is created as the definition says", async () => {
  const { triggers } = instances.millrace;
  const job = full(newQueue());
  const nothing = undefinedIn([...ofBoth.slice(3), ...ofJobs, ...ofTime.slice(1), ...ofQueue]);
  const made = await triggers.create({
    ...{ ...(nothing as object), name: job.queue, type: "TIME", cron: yearly, job },
  });
  expect(made).toMatchObject({ jobType: "a", jobQueue: job.queue, priority: "high" });
  expect(made).toMatchObject({ maxAttempts: 2, timeZone: "UTC", payload: {} });
  await triggers.delete(made.id);
});

test("Millrace's own queue is nobody's to take from or to feed", async () => {
  const { triggers } = instances.millrace;
  const [own, other] = ["millrace.webhooks", newQueue()];
  const items = { type: "QUEUE", jobType: "x" } as const;
  const wrong = [
    { ...items, name: "a", queue: own, jobQueue: other },
    { ...items, name: "b", queue: other, jobQueue: own },
    { name: "c", type: "TIME", cron: yearly, jobType: "x", jobQueue: own },
  ] as const;
  for (const one of wrong)
    expect((await refusal(triggers.create(one))).code).toBe("TRIGGER_INVALID");
  const made = await triggers.create({ ...items, name: "d", queue: other, jobQueue: newQueue() });
  for (const change of [{ queue: own }, { jobQueue: own }])
    expect((await refusal(triggers.update(made.id, change))).code).toBe("TRIGGER_INVALID");
  const { queue, jobQueue } = made;
  expect(await triggers.get(made.id)).toMatchObject({ queue, jobQueue });
  await triggers.delete(made.id);
});

// `explain` where it is up to the workers and what they have put off: one that has room, a breaker that
// stands before a platform, and what holds up its key.

import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { defineJob, Snooze } from "../../src/index.ts";
import { createGate } from "../support/gate.ts";
import { newQueue, useMillrace } from "../support/instance.ts";
import { until } from "../support/until.ts";

const instances = useMillrace();
const reasonOf = async (id: string) => (await instances.millrace.explain(id)).reason;

test("next, where a worker has room and has not looked yet", async () => {
  const { millrace } = instances;
  const queue = newQueue();
  const held = defineJob({ type: "held", queue, run: () => {} });
  const { id } = await millrace.enqueue(held, {});
  // A worker's presence without its loop: it has room, and never looks.
  const lease = millrace.store.lease("asleep");
  const leaseId = randomUUID();
  const info = { queues: [queue], types: ["held"], concurrency: 1 };
  await lease.open({ leaseId, worker: "asleep", leaseMs: 60_000, info });
  expect(await reasonOf(id)).toBe("next");
  await lease.end(leaseId);
  await lease.close();
});

test("breaker_open, for a job that was put off and for one that waits", async () => {
  const { millrace } = instances;
  const queue = newQueue();
  const name = `platform-${queue}`;
  const call = defineJob({ type: "call", queue, platform: name, run: () => {} });
  await millrace.breakers.configure(name, { openCooldownSeconds: 3_600 });
  await millrace.breakers.open(name, "for the test");
  const worker = await instances.work([call]);
  const { id } = await millrace.enqueue(call, {});
  await until("it is put off", async () => (await millrace.get(id))?.state === "scheduled");
  const told = await millrace.explain(id);
  expect(told).toMatchObject({ reason: "breaker_open", state: "scheduled" });
  expect(told.text).toContain(`Breaker "${name}" is open`);
  // Opened by hand: nobody knows until when.
  expect(told.until).toBeNull();
  await instances.query(
    "update millrace.breaker set retry_at = now() + interval '1 h' where name = $1",
    [name],
  );
  expect((await millrace.explain(id)).until).toEqual((await millrace.get(id))?.dueAt);
  await instances.query("update millrace.breaker set retry_at = null where name = $1", [name]);
  await worker.stop();
  const lease = millrace.store.lease("asleep");
  const leaseId = randomUUID();
  const info = { queues: [queue], types: ["call"], concurrency: 1, platforms: { call: name } };
  await lease.open({ leaseId, worker: "asleep", leaseMs: 60_000, info });
  const next = await millrace.enqueue(call, {});
  expect(await millrace.explain(next.id)).toMatchObject({
    reason: "breaker_open",
    state: "ready",
  });
  await millrace.breakers.close(name, "for the test");
  expect(await reasonOf(next.id)).toBe("next");
  expect(await millrace.explain(id)).toMatchObject({
    reason: "snoozed",
    text: expect.stringContaining(`Breaker "${name}" has closed`),
  });
  await lease.end(leaseId);
  await lease.close();
});

test("order_retrying says whether a breaker or its handler has put the earlier job off", async () => {
  const { millrace } = instances;
  const queue = newQueue();
  const platform = `platform-${queue}`;
  const called = defineJob({ type: "called", queue, platform, run: () => {} });
  const snoozing = defineJob({
    type: "snoozing",
    queue,
    run: () => {
      throw new Snooze(60_000);
    },
  });
  await millrace.breakers.configure(platform, {});
  await millrace.breakers.open(platform, "they said so");
  await instances.work([called, snoozing]);
  const pairs = [];
  for (const [job, orderingKey] of [
    [called, "c"],
    [snoozing, "s"],
  ] as const) {
    const first = await millrace.enqueue(job, {}, { orderingKey });
    const second = await millrace.enqueue(job, {}, { orderingKey });
    await until("it is off", async () => (await millrace.get(first.id))?.state === "scheduled");
    pairs.push({ first, told: await millrace.explain(second.id) });
  }
  const [byBreaker, byHandler] = pairs;
  expect(byBreaker?.told).toMatchObject({
    ...{ reason: "order_retrying", until: null },
    holders: [{ job: byBreaker?.first.id, worker: null }],
  });
  expect(byBreaker?.told.text).toContain(`by breaker "${platform}", which is open until somebody`);
  expect(byHandler?.told.reason).toBe("order_retrying");
  expect(byHandler?.told.text).toContain("its handler put it off");
  // What waits for the breaker itself cannot know until when.
  const own = await millrace.explain(byBreaker?.first.id ?? "");
  expect(own).toMatchObject({ reason: "breaker_open", until: null });
});

test("key_concurrency knows no time, whatever the key's throttle says", async () => {
  const { millrace } = instances;
  const keyThrottle = { limit: 1, windowMs: 600_000 };
  const queue = newQueue();
  await millrace.configureQueue(queue, { keyConcurrency: 1, keyThrottle });
  const gate = createGate();
  const held = defineJob({ type: "held", queue, run: () => gate.opened });
  await instances.work([held]);
  const first = await millrace.enqueue(held, {}, { limitKey: "k" });
  await until("it runs", async () => (await millrace.get(first.id))?.state === "running");
  const { id } = await millrace.enqueue(held, {}, { limitKey: "k" });
  expect(await millrace.explain(id)).toMatchObject({ reason: "key_concurrency", until: null });
  gate.open();
  await millrace.result(first.id);
  const told = await millrace.explain(id);
  expect(told.reason).toBe("key_throttle");
  expect(told.until).not.toBeNull();
});

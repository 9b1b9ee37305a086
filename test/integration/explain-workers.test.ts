// `explain` where it is up to the workers: one that has room, and a breaker that stands before a platform.

import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
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
  expect(told.until?.getTime()).toBeGreaterThan(Date.now());
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

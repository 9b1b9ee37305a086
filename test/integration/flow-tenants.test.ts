import { expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import { createGate } from "../support/gate.ts";
import { newQueue, refusal, useMillrace } from "../support/instance.ts";
import { until } from "../support/until.ts";

const instances = useMillrace();

test("another tenant's jobs do not wait for the end of a deep backlog", async () => {
  const { millrace } = instances;
  const order: string[] = [];
  const queue = newQueue();
  const job = defineJob({ type: "fair", queue, run: ({ job }) => void order.push(job.tenant) });
  await millrace.enqueueMany(job, Array(400).fill({}), { tenant: "deep" });
  await millrace.enqueueMany(job, Array(10).fill({}), { tenant: "small" });
  await instances.work([job], { concurrency: 1 });
  await until("all have run", () => order.length === 410);
  // Ten of it among the first twenty, but for the jobs of one claim that was made before it was known.
  expect(order.lastIndexOf("small")).toBeLessThan(25);
});

test("without fairness, what is enqueued later runs later", async () => {
  const { millrace } = instances;
  const order: string[] = [];
  const queue = newQueue();
  await millrace.configureQueue(queue, { fair: false });
  const job = defineJob({ type: "fifo", queue, run: ({ job }) => void order.push(job.tenant) });
  await millrace.enqueueMany(job, Array(40).fill({}), { tenant: "deep" });
  await millrace.enqueueMany(job, Array(3).fill({}), { tenant: "small" });
  await instances.work([job], { concurrency: 1 });
  await until("all have run", () => order.length === 43);
  expect(order.slice(40)).toEqual(["small", "small", "small"]);
  const found = (await millrace.queues()).find(({ name }) => name === queue);
  expect(found?.controlled).toBe(false);
});

test.each([{ fair: true }, { fair: false }])(
  "a paused tenant's jobs are kept and wait, others go on (%o)",
  async (settings) => {
    const { millrace } = instances;
    const queue = newQueue();
    const [paused, other] = [`p-${queue}`, `o-${queue}`];
    await millrace.configureQueue(queue, settings);
    const job = defineJob({ type: "pausable", queue, run: ({ job }) => job.tenant });
    await instances.work([job]);
    await millrace.tenants.pause(paused);
    const kept = await millrace.enqueue(job, {}, { tenant: paused });
    const runs = await millrace.enqueue(job, {}, { tenant: other });
    expect(await millrace.result(runs.id)).toBe(other);
    expect((await millrace.get(kept.id))?.state).toBe("ready");
    expect((await millrace.explain(kept.id)).reason).toBe("tenant_paused");
    await millrace.tenants.resume(paused);
    expect(await millrace.result(kept.id)).toBe(paused);
  },
);

test("a drained queue or tenant runs nothing any more, and keeps what waits", async () => {
  const { millrace } = instances;
  const queue = newQueue();
  const tenant = `d-${queue}`;
  for (const [pause, drain, resume] of [
    [
      () => millrace.pauseQueue(queue),
      () => millrace.drainQueue(queue),
      () => millrace.resumeQueue(queue),
    ],
    [
      () => millrace.tenants.pause(tenant),
      () => millrace.tenants.drain(tenant),
      () => millrace.tenants.resume(tenant),
    ],
  ] as const) {
    const gate = createGate();
    const job = defineJob({ type: "drained", queue, run: () => gate.opened });
    const worker = await instances.work([job], { concurrency: 1 });
    const [first, second] = await millrace.enqueueMany(job, [{}, {}], { tenant });
    const ids = [first?.id ?? "", second?.id ?? ""];
    await until("it runs", async () => (await millrace.get(ids[0] ?? ""))?.state === "running");
    // When this has answered, the workers of the process know it.
    await pause();
    const { reason } = await millrace.explain(ids[1] ?? "");
    expect(["queue_paused", "tenant_paused"]).toContain(reason);
    let drained = false;
    const draining = drain().then(() => {
      drained = true;
    });
    expect(drained).toBe(false);
    gate.open();
    await draining;
    expect((await millrace.get(ids[0] ?? ""))?.state).toBe("completed");
    expect((await millrace.get(ids[1] ?? ""))?.state).toBe("ready");
    await resume();
    await millrace.result(ids[1] ?? "");
    await worker.stop();
  }
});

test("a drain that takes too long says so, and leaves it paused", async () => {
  const { millrace } = instances;
  const queue = newQueue();
  const gate = createGate();
  const job = defineJob({ type: "stuck", queue, run: () => gate.opened });
  await instances.work([job]);
  const { id } = await millrace.enqueue(job, {});
  await until("it runs", async () => (await millrace.get(id))?.state === "running");
  const refused = await refusal(millrace.drainQueue(queue, { timeoutMs: 1 }));
  expect([refused.code, refused.details.running]).toEqual(["TIMEOUT", 1]);
  expect((await millrace.queues()).find(({ name }) => name === queue)?.paused).toBe(true);
  gate.open();
});

test.each([
  ["", {}],
  ["t", { weight: 0 }],
  ["t", { weight: 101 }],
  ["t", { rateLimit: { limit: 1 } }],
  ["t", { colour: "red" }],
])("refuses the tenant settings %j %o", async (name, settings) => {
  const call = instances.millrace.tenants.configure(name, settings as never);
  expect((await refusal(call)).code).toBe("OPTION_INVALID");
});

test("tenants are listed with their settings", async () => {
  const { millrace } = instances;
  const name = `listed-${newQueue()}`;
  await millrace.tenants.configure(name, { weight: 7, rateLimit: { limit: 3, windowMs: 100 } });
  await millrace.tenants.configure(name, { rateLimit: null, capacity: 9, warnDepth: 5 });
  await millrace.tenants.configure(name, { capacity: null });
  await millrace.tenants.pause(name);
  const found = (await millrace.tenants.list()).find((tenant) => tenant.name === name);
  const settings = { weight: 7, rateLimit: null, capacity: null, warnDepth: 5 };
  expect(found).toEqual({ name, ...settings, paused: true });
  await millrace.tenants.resume(name);
});

// `explain` says why a job is not running: each reason is produced for real.

import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { defineJob, NonRetryableError, type QueueSettings, Snooze } from "../../src/index.ts";
import { runCommand } from "../support/command-line.ts";
import { createGate } from "../support/gate.ts";
import { newQueue, refusal, useMillrace } from "../support/instance.ts";
import { until } from "../support/until.ts";

const instances = useMillrace();

interface Scene {
  readonly queue: string;
  readonly gate: ReturnType<typeof createGate>;
  /** Runs until the gate opens. */
  readonly held: ReturnType<typeof defineJob>;
}

async function scene(settings: QueueSettings = {}): Promise<Scene> {
  const queue = newQueue();
  if (Object.keys(settings).length > 0) await instances.millrace.configureQueue(queue, settings);
  const gate = createGate();
  const held = defineJob({ type: "held", queue, run: () => gate.opened });
  return { queue, gate, held };
}

const reasonOf = async (id: string) => (await instances.millrace.explain(id)).reason;

async function running(id: string): Promise<void> {
  await until("it runs", async () => (await instances.millrace.get(id))?.state === "running");
}

test("delayed", async () => {
  const { millrace } = instances;
  const { held } = await scene();
  const { id } = await millrace.enqueue(held, {}, { delayMs: 60_000 });
  const told = await millrace.explain(id);
  expect(told).toMatchObject({ job: id, state: "scheduled", reason: "delayed", holders: [] });
  expect(told.until).toEqual((await millrace.get(id))?.dueAt);
});

test("retrying and snoozed", async () => {
  const { millrace } = instances;
  const queue = newQueue();
  const fails = defineJob({
    type: "fails",
    queue,
    retry: { baseMs: { retryable: 60_000 } },
    run: () => {
      throw new Error("no");
    },
  });
  const snoozes = defineJob({
    type: "snoozes",
    queue,
    run: () => {
      throw new Snooze(60_000, "not yet");
    },
  });
  await instances.work([fails, snoozes]);
  for (const [job, reason] of [
    [fails, "retrying"],
    [snoozes, "snoozed"],
  ] as const) {
    const { id } = await millrace.enqueue(job, {});
    await until("it waits", async () => (await millrace.get(id))?.state === "scheduled");
    expect(await reasonOf(id)).toBe(reason);
  }
});

test("due, and not yet made ready", async () => {
  const { millrace } = instances;
  const { held } = await scene();
  const { id } = await millrace.enqueue(held, {}, { delayMs: 60_000 });
  await instances.query("update millrace.scheduled_job set due_at = now() where id = $1", [id]);
  expect(await reasonOf(id)).toBe("due");
});

test("queue_paused, queue_inactive and tenant_paused", async () => {
  const { millrace } = instances;
  const { held, queue } = await scene();
  const tenant = `t-${queue}`;
  const { id } = await millrace.enqueue(held, {}, { tenant });
  await millrace.pauseQueue(queue);
  expect(await reasonOf(id)).toBe("queue_paused");
  await millrace.resumeQueue(queue);
  await millrace.configureQueue(queue, { isActive: false });
  expect(await reasonOf(id)).toBe("queue_inactive");
  await millrace.configureQueue(queue, { isActive: true });
  await millrace.tenants.pause(tenant);
  expect(await reasonOf(id)).toBe("tenant_paused");
  await millrace.tenants.resume(tenant);
  expect(await reasonOf(id)).toBe("no_worker");
});

test("running, concurrency with its holders, and ended", async () => {
  const { millrace } = instances;
  const { held, gate } = await scene({ concurrency: 1 });
  const worker = await instances.work([held]);
  const first = await millrace.enqueue(held, {});
  await running(first.id);
  expect(await millrace.explain(first.id)).toMatchObject({
    reason: "running",
    holders: [{ job: first.id, worker: worker.name }],
  });
  const second = await millrace.enqueue(held, {});
  expect(await millrace.explain(second.id)).toMatchObject({
    reason: "concurrency",
    holders: [{ job: first.id, worker: worker.name }],
  });
  gate.open();
  await millrace.result(second.id);
  expect(await reasonOf(second.id)).toBe("ended");
});

test("key_concurrency, with the holders of its key only", async () => {
  const { millrace } = instances;
  const { held, gate } = await scene({ keyConcurrency: 1 });
  await instances.work([held]);
  const [a, b] = [
    await millrace.enqueue(held, {}, { limitKey: "a" }),
    await millrace.enqueue(held, {}, { limitKey: "b" }),
  ];
  await running(a.id);
  await running(b.id);
  const { id } = await millrace.enqueue(held, {}, { limitKey: "a" });
  const told = await millrace.explain(id);
  expect(told.reason).toBe("key_concurrency");
  expect(told.holders.map(({ job }) => job)).toEqual([a.id]);
  gate.open();
});

test("order_running, order_waiting, order_retrying and order_dead", async () => {
  const { millrace } = instances;
  const { queue, gate } = await scene({ deadLetterBlocksKey: true });
  let ending: "retry" | "dead" = "retry";
  const job = defineJob({
    type: "held",
    queue,
    retry: { baseMs: { retryable: 60_000 } },
    async run() {
      await gate.opened;
      if (ending === "dead") throw new NonRetryableError("no");
      throw new Error("no");
    },
  });
  const [first, second] = [
    await millrace.enqueue(job, {}, { orderingKey: "k" }),
    await millrace.enqueue(job, {}, { orderingKey: "k" }),
  ];
  expect(await millrace.explain(second.id)).toMatchObject({
    reason: "order_waiting",
    holders: [{ job: first.id, worker: null }],
  });
  await instances.work([job]);
  await running(first.id);
  expect(await millrace.explain(second.id)).toMatchObject({
    reason: "order_running",
    holders: [{ job: first.id }],
  });
  gate.open();
  await until("it waits", async () => (await millrace.get(first.id))?.state === "scheduled");
  const retrying = await millrace.explain(second.id);
  const holders = [{ job: first.id, worker: null }];
  expect(retrying).toMatchObject({ reason: "order_retrying", holders });
  expect(retrying.text).toContain(`Job ${first.id} of its ordering key`);
  expect(retrying.text).toContain("it failed");
  expect(retrying.until).toEqual((await millrace.get(first.id))?.dueAt);
  ending = "dead";
  await instances.query("update millrace.scheduled_job set due_at = now() where id = $1", [
    first.id,
  ]);
  await until("it is dead", async () => (await millrace.get(first.id))?.state === "dead");
  const dead = await millrace.explain(second.id);
  expect(dead).toMatchObject({ reason: "order_dead", holders, until: null });
  expect(dead.text).toContain(first.id);
});

test("throttle and key_throttle, with the time when they free", async () => {
  const { millrace } = instances;
  const rate = { limit: 1, windowMs: 600_000 };
  for (const [settings, options, reason] of [
    [{ throttle: rate }, {}, "throttle"],
    [{ keyThrottle: rate }, { limitKey: "k" }, "key_throttle"],
  ] as const) {
    const { queue } = await scene(settings);
    const quick = defineJob({ type: "quick", queue, run: () => {} });
    await instances.work([quick]);
    const first = await millrace.enqueue(quick, {}, options);
    await millrace.result(first.id);
    const { id } = await millrace.enqueue(quick, {}, options);
    const told = await millrace.explain(id);
    expect(told.reason).toBe(reason);
    expect(told.until?.getTime()).toBeGreaterThan(Date.now());
  }
});

test("no_worker, no_handler, turn and workers_busy", async () => {
  const { millrace } = instances;
  const { held, gate, queue } = await scene();
  const other = defineJob({ type: "other", queue, run: () => {} });
  const first = await millrace.enqueue(other, {});
  expect(await reasonOf(first.id)).toBe("no_worker");
  await instances.work([held], { concurrency: 1 });
  await until("it is known", async () => (await reasonOf(first.id)) === "no_handler");
  const busy = await millrace.enqueue(held, {});
  await running(busy.id);
  const next = await millrace.enqueue(held, {}, { priority: "high" });
  expect(await millrace.explain(next.id)).toMatchObject({
    reason: "workers_busy",
    text: `It is next. The only worker of queue "${queue}" for "held" cannot take more at once.`,
  });
  const last = await millrace.enqueue(held, {}, { priority: "low" });
  expect(await millrace.explain(last.id)).toMatchObject({
    reason: "turn",
    text: "2 jobs come before it.",
  });
  gate.open();
});

test("turn, with the tenants it takes turns with", async () => {
  const { millrace } = instances;
  const { held, gate } = await scene();
  await instances.work([held], { concurrency: 1 });
  const busy = await millrace.enqueue(held, {}, { tenant: "a" });
  await running(busy.id);
  for (const tenant of ["a", "b", "b"]) await millrace.enqueue(held, {}, { tenant });
  const { id } = await millrace.enqueue(held, {}, { tenant: "b" });
  expect(await millrace.explain(id)).toMatchObject({
    reason: "turn",
    text: "2 jobs come before it, and 2 tenants take turns.",
  });
  gate.open();
});

test("expired, and not yet cleared away", async () => {
  const { millrace } = instances;
  const { held } = await scene();
  // The janitor of a worker before may come first: then the next one is looked at.
  await until("one is seen that has expired and is still there", async () => {
    const { id } = await millrace.enqueue(held, {}, { expiresInMs: 1 });
    const { reason, state } = await millrace.explain(id);
    return reason === "expired" && state === "ready";
  });
});

test("suspect", async () => {
  const { millrace } = instances;
  const { held, gate } = await scene();
  await instances.work([held], { concurrency: 1 });
  const busy = await millrace.enqueue(held, {});
  await running(busy.id);
  const { id } = await millrace.enqueue(held, {});
  await instances.query("update millrace.job set crash_count = 1, lane = -1 where id = $1", [id]);
  expect(await reasonOf(id)).toBe("suspect");
  gate.open();
});

test("a job that does not exist, and an id that is none", async () => {
  const { millrace } = instances;
  expect((await refusal(millrace.explain(randomUUID()))).code).toBe("JOB_NOT_FOUND");
  expect((await refusal(millrace.explain("x"))).code).toBe("JOB_NOT_FOUND");
});

test("the command says the same, in words and as JSON", async () => {
  const { millrace, url } = instances;
  const { held } = await scene();
  const { id } = await millrace.enqueue(held, {}, { delayMs: 60_000 });
  const env = { DATABASE_URL: url };
  const words = await runCommand(["explain", id], env);
  expect([words.code, words.err]).toEqual([0, ""]);
  expect(words.out).toContain("delayed");
  const json = await runCommand(["explain", id, "--json"], env);
  expect(JSON.parse(json.out)).toMatchObject({ job: id, reason: "delayed", state: "scheduled" });
  const unknown = await runCommand(["explain", randomUUID()], env);
  expect([unknown.code, unknown.out]).toEqual([3, ""]);
  expect(unknown.err).toContain("JOB_NOT_FOUND");
  expect((await runCommand(["explain"], env)).code).toBe(2);
});

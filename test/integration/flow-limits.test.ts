import { expect, test } from "vitest";
import { z } from "zod";
import { defineJob } from "../../src/index.ts";
import { createGate } from "../support/gate.ts";
import { newQueue, refusal, useMillrace } from "../support/instance.ts";
import { until } from "../support/until.ts";

const instances = useMillrace();

/** Handlers that note when they run, and how many of them do at once. */
class Watch {
  readonly order: string[] = [];
  readonly #running = new Map<string, number>();
  readonly most = new Map<string, number>();

  async run(key: string, name: string, work: () => Promise<void> = pause): Promise<void> {
    const running = (this.#running.get(key) ?? 0) + 1;
    this.#running.set(key, running);
    this.most.set(key, Math.max(this.most.get(key) ?? 0, running));
    this.order.push(name);
    try {
      await work();
    } finally {
      this.#running.set(key, (this.#running.get(key) ?? 0) - 1);
    }
  }
}

const pause = () => new Promise<void>((resolve) => setTimeout(resolve, 2));

const numbered = z.object({ key: z.string(), n: z.number() });

test("jobs of one ordering key run one at a time and in order, across processes and retries", async () => {
  const { millrace } = instances;
  const queue = newQueue();
  const watch = new Watch();
  const failed = new Set<string>();
  const job = defineJob({
    type: "ordered",
    queue,
    payload: numbered,
    orderingKey: ({ key }) => key,
    retry: { baseMs: { retryable: 20 } },
    run: ({ payload: { key, n } }) => {
      return watch.run(key, `${key}${n}`, async () => {
        await pause();
        if (n % 4 !== 1 || failed.has(`${key}${n}`)) return;
        failed.add(`${key}${n}`);
        throw new Error("once");
      });
    },
  });
  const ids: string[] = [];
  for (let n = 0; n < 8; n++)
    for (const key of ["a", "b", "c"]) ids.push((await millrace.enqueue(job, { key, n })).id);
  const other = await instances.connect();
  await instances.work([job], { concurrency: 10 });
  await other.work([job], { concurrency: 10 });
  for (const id of ids) await millrace.result(id);
  for (const key of ["a", "b", "c"]) {
    expect(watch.most.get(key)).toBe(1);
    const runs = watch.order.filter((name) => name.startsWith(key));
    const expected = Array.from({ length: 8 }, (_, n) =>
      n % 4 === 1 ? [`${key}${n}`, `${key}${n}`] : [`${key}${n}`],
    );
    expect(runs).toEqual(expected.flat());
  }
  expect((await millrace.get(ids[0] ?? ""))?.meta.orderingKey).toBe("a");
});

test("a job behind a thousand keys of types that nobody runs here, a deep one among them, starts", async () => {
  const { millrace } = instances;
  const queue = newQueue();
  const foreign = defineJob({ type: "nobodys", queue });
  const own = defineJob({ type: "own", queue, run: pause });
  await millrace.enqueueMany(foreign, Array(1_000).fill({}), (_, n) => ({ limitKey: `f${n}` }));
  await millrace.enqueueMany(foreign, Array(200).fill({}), () => ({ orderingKey: "deep" }));
  await instances.work([own], { concurrency: 2 });
  const keys = Array.from({ length: 20 }, (_, n) => ({ orderingKey: `own ${n}` }));
  const made = await millrace.enqueueMany(own, Array(20).fill({}), (_, n) => keys[n] ?? {});
  for (const { id } of made) await millrace.result(id);
});

test("no more jobs of a queue run at once than it allows, in all processes together", async () => {
  const { millrace } = instances;
  const queue = newQueue();
  await millrace.configureQueue(queue, { concurrency: 3 });
  const watch = new Watch();
  const job = defineJob({ type: "few", queue, run: () => watch.run("all", "x") });
  const other = await instances.connect();
  await instances.work([job], { concurrency: 20 });
  await other.work([job], { concurrency: 20 });
  const made = await millrace.enqueueMany(job, Array(60).fill({}));
  for (const { id } of made) await millrace.result(id);
  expect(watch.most.get("all")).toBe(3);
});

test("a limit key has slots of its own", async () => {
  const { millrace } = instances;
  const queue = newQueue();
  await millrace.configureQueue(queue, { keyConcurrency: 2 });
  const watch = new Watch();
  const job = defineJob({
    type: "by-key",
    queue,
    payload: numbered,
    run: ({ payload }) => watch.run(payload.key, "x"),
  });
  await instances.work([job], { concurrency: 20 });
  const payloads = Array.from({ length: 40 }, (_, n) => ({ key: n % 2 === 0 ? "a" : "b", n }));
  const made = await millrace.enqueueMany(job, payloads, ({ key }) => ({ limitKey: key }));
  for (const { id } of made) await millrace.result(id);
  expect([watch.most.get("a"), watch.most.get("b")]).toEqual([2, 2]);
});

test("a limit that is set while the queue is worked on holds soon after", async () => {
  const { millrace } = instances;
  const queue = newQueue();
  const watch = new Watch();
  let gate = createGate();
  const job = defineJob({
    type: "later",
    queue,
    run: () => watch.run("all", "x", () => gate.opened),
  });
  await instances.work([job], { concurrency: 10 });
  await millrace.configureQueue(queue, { concurrency: 1 });
  await until("the queue is controlled", async () => {
    const found = (await millrace.queues()).find(({ name }) => name === queue);
    return found?.controlled === true;
  });
  const made = await millrace.enqueueMany(job, Array(5).fill({}));
  for (let n = 1; n <= 5; n++) {
    await until(`${n} have started`, () => watch.order.length === n);
    const { open } = gate;
    gate = createGate();
    open();
  }
  for (const { id } of made) await millrace.result(id);
  expect(watch.most.get("all")).toBe(1);
});

test("a slot that another process frees is taken within a moment", async () => {
  const { millrace } = instances;
  const queue = newQueue();
  await millrace.configureQueue(queue, { concurrency: 1 });
  const other = await instances.connect();
  const gate = createGate();
  const held = defineJob({ type: "held", queue, run: () => gate.opened });
  const quick = defineJob({ type: "quick", queue, run: () => {} });
  await other.work([held]);
  await instances.work([quick]);
  const first = await millrace.enqueue(held, {});
  await until("it runs", async () => (await millrace.get(first.id))?.state === "running");
  const second = await millrace.enqueue(quick, {});
  expect((await millrace.explain(second.id)).reason).toBe("concurrency");
  gate.open();
  await millrace.result(second.id);
});

test("what exceeds a throttle waits, and spends neither attempts nor slots", async () => {
  const { millrace } = instances;
  const queue = newQueue();
  await millrace.configureQueue(queue, { throttle: { limit: 5, windowMs: 1_000 } });
  const job = defineJob({ type: "throttled", queue, run: () => {} });
  const other = defineJob({ type: "other", queue: newQueue(), run: () => {} });
  const worker = await instances.work([job, other], { concurrency: 2 });
  const made = await millrace.enqueueMany(job, Array(12).fill({}));
  const beside = await millrace.enqueue(other, {});
  await millrace.result(beside.id);
  for (const { id } of made) await millrace.result(id);
  const rows = await instances.query<{ started_at: Date; attempt: number }>(
    "select h.started_at, h.attempt from millrace.history h where h.id = any($1)",
    [made.map(({ id }) => id)],
  );
  const starts = rows.map(({ started_at }) => started_at.getTime()).sort((a, b) => a - b);
  for (let i = 5; i < starts.length; i++)
    expect((starts[i] ?? 0) - (starts[i - 5] ?? 0)).toBeGreaterThanOrEqual(1_000);
  expect(new Set(rows.map(({ attempt }) => attempt))).toEqual(new Set([1]));
  expect(worker.busy).toBe(0);
});

test("a job has one key, and keys are checked", async () => {
  const { millrace } = instances;
  const job = defineJob({ type: "keyed", queue: newQueue() });
  for (const options of [
    { orderingKey: "a", limitKey: "b" },
    { orderingKey: "" },
    { limitKey: "\n" },
  ])
    expect((await refusal(millrace.enqueue(job, {}, options))).code).toBe("OPTION_INVALID");
});

test.each([
  { concurrency: 0 },
  { keyConcurrency: 1.5 },
  { throttle: { limit: 1, windowMs: 1 } },
  { throttle: { limit: 1 } },
  { rateLimit: { limit: 0, windowMs: 1_000 } },
  { ageingStepMs: -1 },
  { fair: "yes" },
])("refuses the setting %o", async (settings) => {
  const { millrace } = instances;
  const call = millrace.configureQueue(newQueue(), settings as never);
  expect((await refusal(call)).code).toBe("OPTION_INVALID");
});

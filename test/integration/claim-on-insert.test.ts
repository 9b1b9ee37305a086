import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { defineJob } from "../../src/index.ts";
import { newQueue, useMillrace } from "../support/instance.ts";
import { until } from "../support/until.ts";

// A poll that never comes: what runs was handed over or announced.
const instances = useMillrace({ pollMs: 600_000 });

/** Claimed by the statement that stored them: both times are its own. */
async function handedOver(type: string): Promise<number> {
  const rows = await instances.query<{ count: number }>(
    "select count(*)::int from millrace.history where type = $1 and started_at = created_at",
    [type],
  );
  return rows[0]?.count ?? 0;
}

describe("a producer beside an idle worker in one process", () => {
  it("keeps the order of acknowledgement", async () => {
    const { millrace } = instances;
    const seen: unknown[] = [];
    const job = defineJob({
      type: "order",
      queue: newQueue(),
      run: ({ payload }) => void seen.push(payload),
    });
    await instances.work([job], { concurrency: 1 });
    const expected = Array.from({ length: 300 }, (_, n) => n);
    for (const n of expected) await millrace.enqueue(job, n);
    await until("all have run", () => seen.length === expected.length);
    expect(seen).toEqual(expected);
  });

  it("keeps the order of acknowledgement across instances", async () => {
    const { millrace } = instances;
    const other = await instances.connect();
    for (let round = 0; round < 30; round++) {
      const seen: unknown[] = [];
      const job = defineJob({
        type: "order",
        queue: newQueue(),
        run: ({ payload }) => void seen.push(payload),
      });
      const worker = await instances.work([job], { concurrency: 1 });
      await other.enqueue(job, "first");
      await millrace.enqueue(job, "second");
      await until("both have run", () => seen.length === 2);
      expect(seen).toEqual(["first", "second"]);
      await worker.stop();
    }
  });

  it("hands jobs over in the very statement that stores them, and in order", async () => {
    const { millrace } = instances;
    const seen: unknown[] = [];
    const job = defineJob({
      type: "handed.over",
      queue: newQueue(),
      run: ({ payload }) => void seen.push(payload),
    });
    await instances.work([job]);
    let sent = 0;
    await until("five were handed over", async () => {
      await delay(5);
      await millrace.waitFor((await millrace.enqueue(job, sent++)).id);
      return (await handedOver(job.type)) >= 5;
    });
    expect(seen).toEqual([...Array(sent).keys()]);
    const made = await millrace.enqueueMany(job, [sent, sent + 1, sent + 2]);
    for (const { id } of made) expect(await millrace.waitFor(id)).toMatchObject({ attempt: 1 });
  });

  it("hands nothing over while the queue is paused", async () => {
    const { millrace } = instances;
    const seen: unknown[] = [];
    const job = defineJob({
      type: "paused",
      queue: newQueue(),
      run: ({ payload }) => void seen.push(payload),
    });
    await instances.work([job]);
    await until("the worker is idle and takes what is offered", async () => {
      await delay(5);
      await millrace.waitFor((await millrace.enqueue(job, "before")).id);
      return (await handedOver(job.type)) > 0;
    });
    await millrace.pauseQueue(job.queue);
    const ids: string[] = [];
    for (let n = 0; n < 20; n++) {
      await delay(20);
      ids.push((await millrace.enqueue(job, n)).id);
    }
    for (const id of ids) expect(await millrace.get(id)).toMatchObject({ state: "ready" });
    await millrace.resumeQueue(job.queue);
    for (const id of ids) await millrace.waitFor(id);
    expect(seen.filter((payload) => payload !== "before")).toEqual([...Array(20).keys()]);
  });

  it("loses nothing and repeats nothing under load, with two workers", async () => {
    const { millrace } = instances;
    const runs = new Map<number, number>();
    const job = defineJob({
      type: "load",
      queue: newQueue(),
      run: async ({ payload }) => {
        const n = payload as number;
        runs.set(n, (runs.get(n) ?? 0) + 1);
        if (n % 7 === 0) await new Promise(setImmediate);
        return n;
      },
    });
    const workers = [
      await instances.work([job], { concurrency: 20 }),
      await instances.work([job], { concurrency: 5 }),
    ];
    const ids: string[] = [];
    let next = 0;
    const producer = async () => {
      while (next < 4_000) ids.push((await millrace.enqueue(job, next++)).id);
    };
    const bulk = millrace.enqueueMany(
      job,
      Array.from({ length: 1_000 }, (_, n) => 4_000 + n),
    );
    await Promise.all([...Array.from({ length: 16 }, producer), bulk]);
    ids.push(...(await bulk).map(({ id }) => id));
    const countsOf = async () =>
      (await millrace.queues()).find(({ name }) => name === job.queue)?.counts;
    await until("all have ended", async () => (await countsOf())?.depth === 0, 60_000);
    expect(await countsOf()).toMatchObject({ enqueued: 5_000, completed: 5_000, retried: 0 });
    expect(new Set(ids).size).toBe(5_000);
    expect(runs.size).toBe(5_000);
    expect(new Set(runs.values())).toEqual(new Set([1]));
    for (const worker of workers) await worker.stop();
    const left = await instances.query("select 1 from millrace.job where type = 'load'");
    expect(left).toEqual([]);
  });
});

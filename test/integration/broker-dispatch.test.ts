// What is dispatched over Redis, and to whom.

import pg from "pg";
import { describe, expect, it } from "vitest";
import { BrokerTrial, numbers, recorded } from "../support/broker-trial.ts";
import { createGate } from "../support/gate.ts";
import { until } from "../support/until.ts";

const broker = BrokerTrial.use();

it("several instances share the jobs of several producers", async () => {
  const { job, runs } = recorded();
  const producers = [await broker.connect(), await broker.connect()];
  for (let i = 0; i < 3; i++) await (await broker.connect()).work([job]);
  await Promise.all(
    producers.map((producer, p) =>
      Promise.all(numbers(500).map((n) => producer.enqueue(job, `${p}.${n}`))),
    ),
  );
  await broker.trial.drained();
  expect(new Set(runs).size).toBe(1_000);
  expect(runs).toHaveLength(1_000);
});

it("one slot runs hinted jobs by priority, then in their order", async () => {
  const window = await broker.openWindow();
  const producer = await broker.connect();
  const { job, runs } = recorded();
  for (const n of numbers(12)) {
    const priority = ["low", "high", "normal"][n % 3] ?? "normal";
    await producer.enqueue(job, `${priority} ${Math.floor(n / 3)}`, { priority });
  }
  await window.holds(12);
  await (await broker.connect()).work([job], { concurrency: 1 });
  await broker.trial.drained();
  expect(runs).toEqual(
    ["high", "normal", "low"].flatMap((priority) => numbers(4).map((n) => `${priority} ${n}`)),
  );
});

it("workers of different types in one queue finish all of theirs", async () => {
  const [a, b] = [recorded("type.a"), recorded("type.b")];
  const producer = await broker.connect();
  await (await broker.connect()).work([a.job]);
  await (await broker.connect()).work([b.job]);
  for (const n of numbers(100)) {
    await Promise.all([producer.enqueue(a.job, n), producer.enqueue(b.job, n)]);
  }
  await broker.trial.drained();
  for (const { runs } of [a, b]) expect(runs.sort()).toEqual(numbers(100).sort());
});

it("a hint that a worker cannot use is there for one that can", async () => {
  const window = await broker.openWindow();
  const producer = await broker.connect();
  const [known, unknown] = [recorded("known"), recorded("unknown")];
  await producer.enqueueMany(unknown.job, numbers(5));
  await window.holds(5);
  const consumer = await broker.connect();
  await consumer.work([known.job]);
  await consumer.result((await producer.enqueue(known.job, 1)).id);
  await window.holds(5);
  await (await broker.connect()).work([unknown.job]);
  await broker.trial.drained();
  expect(unknown.runs).toHaveLength(5);
});

it("jobs of a caller's transaction and of the SQL function are picked up", async () => {
  const { job, runs } = recorded();
  const producer = await broker.connect();
  await (await broker.connect()).work([job]);
  const client = new pg.Client({ connectionString: broker.trial.url });
  await client.connect();
  try {
    await client.query("begin");
    await producer.enqueue(job, "in a transaction", { tx: client });
    await client.query("commit");
    await until("it ran", () => runs.includes("in a transaction"));
    await client.query(`select millrace.enqueue('recorded', '"by sql"')`);
    await until("it ran", () => runs.includes("by sql"));
  } finally {
    await client.end();
  }
});

it("delayed and named jobs are picked up", async () => {
  const { job } = recorded();
  const producer = await broker.connect();
  await (await broker.connect()).work([job]);
  const delayed = await producer.enqueue(job, "delayed", { delayMs: 50 });
  const named = await producer.enqueue(job, "named", { key: "once" });
  expect(await producer.result(delayed.id)).toBe("delayed");
  expect(await producer.result(named.id)).toBe("named");
});

describe("a backlog deeper than the window", () => {
  const depth = 30_000;

  it("drains in its order before anything newer, while Redis holds no more than the window", async () => {
    const window = await broker.openWindow();
    const producer = await broker.connect();
    const { job, runs } = recorded();
    for (let from = 0; from < depth; from += 5_000)
      await producer.enqueueMany(
        job,
        numbers(5_000).map((n) => from + n),
      );
    await window.holds(10_000);
    await (await broker.connect()).work([job], { concurrency: 1 });
    let most = 0;
    let later = depth;
    await until(
      "all have run",
      async () => {
        most = Math.max(most, await window.size());
        // What comes now finds room in the window, and has to wait for its turn all the same.
        if (later < depth + 200) await producer.enqueue(job, later++);
        return runs.length === later;
      },
      120_000,
    );
    expect(most).toBeLessThanOrEqual(10_000);
    expect(runs.slice(0, depth)).toEqual(numbers(depth));
    expect(new Set(runs)).toEqual(new Set(numbers(later)));
  }, 180_000);
});

it("a worker that stops gives back the hints it has not claimed", async () => {
  const window = await broker.openWindow();
  const gate = createGate();
  const { job, runs } = recorded();
  const [producer, consumer] = [await broker.connect(), await broker.connect()];
  const run = ({ payload }: { payload: unknown }) => (payload === "slow" ? gate.opened : null);
  const worker = await consumer.work([{ ...job, run }], { concurrency: 4, drainMs: 0 });
  // Quick ones make it take ahead of its needs, slow ones make it keep that.
  await producer.enqueueMany(job, Array(500).fill("quick"));
  await broker.trial.drained();
  await producer.enqueueMany(job, Array(4_000).fill("slow"));
  const unclaimed = async () => {
    const text = "select count(*)::int as n from millrace.job where claim_no = 0";
    return (await broker.trial.db.query<{ n: number }>(text)).rows[0]?.n ?? 0;
  };
  await until("it holds hints", async () => (await unclaimed()) - (await window.size()) > 0);
  await worker.stop();
  expect(await window.size()).toBe(await unclaimed());
  await (await broker.connect()).work([job], { concurrency: 50 });
  await broker.trial.drained();
  expect(runs).toHaveLength(4_000);
  gate.open();
});

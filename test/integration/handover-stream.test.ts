// A worker of another instance gets whole flushes with the statement that stores them.

import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import type { Millrace } from "../../src/index.ts";
import { type HandoverStage, handoverStage, heardOf } from "../support/handovers.ts";
import { useMillrace } from "../support/instance.ts";
import { until } from "../support/until.ts";

// A poll that never comes: what runs was handed over or announced.
const instances = useMillrace({ pollMs: 600_000 });

const streamed = async (
  producer: Millrace,
  job: HandoverStage["job"],
  count: number,
  payloadOf: (n: number) => unknown = (n) => n,
) => {
  const ids: string[] = [];
  let next = 0;
  const send = async () => {
    while (next < count) ids.push((await producer.enqueue(job, payloadOf(next++))).id);
  };
  await Promise.all(Array.from({ length: 20 }, send));
  return ids;
};
const historyOf = (ids: readonly string[]) =>
  instances.query<{ id: string; state: string; attempt: number; crash_count: number }>(
    "select id, state, attempt, crash_count from millrace.history where id = any ($1)",
    [ids],
  );
const untilEnded = (ids: readonly string[]) =>
  until("all have ended", async () => (await historyOf(ids)).length >= ids.length);
const numbers = (runs: readonly unknown[]) =>
  runs.filter((payload) => typeof payload === "number").sort((a, b) => a - b);
const upTo = (count: number) => Array.from({ length: count }, (_, n) => n);

test("a stream of jobs is handed over by whole flushes, each job once and nothing left behind", async () => {
  const { producer, consumer, job, runs } = await handoverStage(instances, { concurrency: 50 });
  const made = heardOf(producer, "handover.made");
  const received = heardOf(consumer, "handover.received");
  const ids = await streamed(producer, job, 2_000);
  await untilEnded(ids);
  const handed = made.reduce((sum, { jobs }) => sum + jobs, 0);
  expect(made.filter(({ jobs }) => jobs > 1).length).toBeGreaterThan(0);
  expect(received.reduce((sum, { jobs }) => sum + jobs, 0)).toBe(handed);
  expect(received.every(({ kept }) => kept)).toBe(true);
  expect(numbers(runs)).toEqual(upTo(2_000));
  for (const row of await historyOf(ids))
    expect(row).toMatchObject({ state: "completed", attempt: 1, crash_count: 0 });
  const [worked] = await instances.query(
    "select payload, worker, started_at >= created_at as is_later from millrace.history where id = $1",
    [ids.at(-1)],
  );
  expect(worked).toMatchObject({ payload: 1_999, is_later: true });
});

test("a stream of long jobs is handed over too, each with its own payload", async () => {
  const { producer, consumer, job, runs } = await handoverStage(instances, { concurrency: 50 });
  const made = heardOf(producer, "handover.made");
  const received = heardOf(consumer, "handover.received");
  const payloadOf = (n: number) => ({ n, note: "a longer text, ü, ".repeat(60) });
  const ids = await streamed(producer, job, 2_000, payloadOf);
  await untilEnded(ids);
  expect(made.filter(({ jobs }) => jobs > 1).length).toBeGreaterThan(0);
  const sum = (events: readonly { jobs: number }[]) => events.reduce((n, { jobs }) => n + jobs, 0);
  expect(sum(received)).toBe(sum(made));
  const ran = runs.filter((payload) => typeof payload === "object") as { n: number }[];
  expect(ran.sort((a, b) => a.n - b.n)).toEqual(upTo(2_000).map(payloadOf));
  for (const row of await historyOf(ids))
    expect(row).toMatchObject({ state: "completed", attempt: 1, crash_count: 0 });
});

test("a stream goes on when the connection that hears of it breaks, again and again", async () => {
  const connect = { renewMs: 300, leaseMs: 60_000 };
  const { producer, job, runs } = await handoverStage(instances, { concurrency: 50 }, connect);
  let ended = false;
  const streaming = streamed(producer, job, 5_000).finally(() => {
    ended = true;
  });
  for (let n = 0; n < 5 || !ended; n++) {
    await instances.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
      where application_name = 'millrace listener' and datname = current_database()`,
    );
    await delay(20);
  }
  const ids = await streaming;
  await untilEnded(ids);
  expect(numbers(runs)).toEqual(upTo(5_000));
  for (const row of await historyOf(ids))
    expect(row).toMatchObject({ state: "completed", attempt: 1, crash_count: 0 });
});

test("a stream goes to others when the worker stops in the middle of it", async () => {
  const { producer, worker, job, runs } = await handoverStage(instances, { concurrency: 50 });
  const heir = await instances.connect();
  const streaming = streamed(producer, job, 3_000);
  await until("some have run", () => numbers(runs).length > 300);
  await worker.stop();
  await heir.work([job], { drainMs: 0, concurrency: 50 });
  const ids = await streaming;
  await untilEnded(ids);
  expect(numbers(runs)).toEqual(upTo(3_000));
  for (const row of await historyOf(ids))
    expect(row).toMatchObject({ state: "completed", crash_count: 0 });
});

test("a stream waits as ready jobs while the worker stands still, and nothing is lost", async () => {
  const { producer, job, runs, open } = await handoverStage(instances, { concurrency: 4 });
  const held = await producer.enqueueMany(job, ["hold", "hold", "hold", "hold"]);
  await until("its slots are taken", () => runs.filter((one) => one === "hold").length === 4);
  const ids = await streamed(producer, job, 300);
  const [waiting] = await instances.query<{ n: number }>(
    "select count(*)::int as n from millrace.job where claim_id is null and id = any ($1)",
    [ids],
  );
  expect(waiting?.n).toBeGreaterThan(200);
  open();
  await untilEnded([...ids, ...held.map(({ id }) => id)]);
  expect(numbers(runs)).toEqual(upTo(300));
});

test("slow jobs that follow quick ones hold up neither each other nor those that come later", async () => {
  const { producer, job, runs, open } = await handoverStage(instances, { concurrency: 2 });
  await untilEnded(await streamed(producer, job, 300));
  const second = await instances.connect();
  await second.work([job], { concurrency: 2, drainMs: 0 });
  const slow = await producer.enqueueMany(
    job,
    Array.from({ length: 4 }, () => "hold"),
  );
  await until("both have taken two", () => runs.filter((one) => one === "hold").length === 4);
  const third = await instances.connect();
  await third.work([job], { concurrency: 2, drainMs: 0 });
  for (let n = 0; n < 40; n++) {
    const { id } = await producer.enqueue(job, "later");
    expect(await producer.waitFor(id)).toMatchObject({ state: "completed", attempt: 1 });
  }
  open();
  await untilEnded(slow.map(({ id }) => id));
});

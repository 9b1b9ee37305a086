// The crash windows of docs/design/broker.md, each produced.

import { describe, expect, it } from "vitest";
import type { Millrace } from "../../src/index.ts";
import { BrokerTrial, dispatchOf, numbers, recorded } from "../support/broker-trial.ts";
import { createGate } from "../support/gate.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { chaosJob } from "../support/trial.ts";
import { until } from "../support/until.ts";

const broker = BrokerTrial.use({ durable: true });
/** It hears of jobs from PostgreSQL only. */
const withoutRedis = { useRedis: false };

async function enqueueFive(producer: Millrace): Promise<string[]> {
  const payloads = numbers(5).map(() => ({ kind: "quick" }));
  return (await producer.enqueueMany(chaosJob, payloads)).map(({ id }) => id);
}

function isDone(promise: Promise<unknown>): () => boolean {
  let done = false;
  void promise.then(() => {
    done = true;
  });
  return () => done;
}

async function eachRanOnce(ids: readonly string[]): Promise<void> {
  await broker.trial.drained();
  for (const id of ids) {
    const job = await broker.trial.job(id);
    expect(job).toMatchObject({ state: "completed", attempt: 1, crashCount: 0 });
    expect(broker.trial.about(id, "start")).toHaveLength(1);
  }
}

describe("window 1: committed, but not hinted", () => {
  it("because the producer died: a direct claim finds the job", async () => {
    const proxy = await TcpProxy.start(broker.redis.url);
    broker.endsWith(() => proxy.close());
    await broker.start();
    const types = [{ type: "bystander" }];
    const producer = await broker.start({ types, connect: { redisUrl: proxy.url } });
    await broker.trial.end(await producer.enqueue({ kind: "quick" }));
    proxy.silence();
    const id = await producer.enqueue({ kind: "quick" });
    await producer.kill();
    expect(await broker.trial.end(id)).toMatchObject({ state: "completed", attempt: 1 });
  });

  it("because Redis is full: workers are told by PostgreSQL", async () => {
    const { job, runs } = recorded();
    await broker.openWindow();
    const [producer, consumer] = [await broker.connect(), await broker.connectOnly(withoutRedis)];
    await consumer.work([job]);
    await broker.redis.command("CONFIG", "SET", "maxmemory", "1");
    for (const n of numbers(20)) await producer.result((await producer.enqueue(job, n)).id);
    expect(runs).toEqual(numbers(20));
  });

  it("because the producer stopped while Redis was silent: workers are told before that", async () => {
    const { job } = recorded();
    const [producer, consumer] = [await broker.connect(), await broker.connectOnly(withoutRedis)];
    await consumer.work([job]);
    await producer.result((await producer.enqueue(job, 0)).id);
    broker.pauseRedis();
    const { id } = await producer.enqueue(job, 1);
    await producer.stop();
    expect(await consumer.result(id)).toBe(1);
  });
});

it("window 2: taken from Redis by a worker that died before it claimed", async () => {
  const proxy = await TcpProxy.start(broker.trial.url);
  broker.endsWith(() => proxy.close());
  const victim = await broker.start({ connect: { databaseUrl: proxy.url } });
  await broker.start();
  const producer = await broker.connect();
  const taken = isDone(proxy.loseQuestion("claim_by_place").then(() => proxy.refuse()));
  const ids: string[] = [];
  while (!taken()) {
    ids.push(...(await enqueueFive(producer)));
    await broker.trial.drained();
  }
  await victim.kill();
  // What it had begun before, by claims that were answered, is another window's business.
  const begun = new Set(victim.of("start").map(({ job }) => job));
  const onlyHinted = ids.filter((id) => !begun.has(id));
  expect(onlyHinted).not.toEqual([]);
  await eachRanOnce(onlyHinted);
});

it("window 3: a claim of hints whose answer is lost brings the same jobs again", async () => {
  const proxy = await TcpProxy.start(broker.trial.url);
  broker.endsWith(() => proxy.close());
  const worker = await broker.start({ connect: { databaseUrl: proxy.url } });
  const producer = await broker.connect();
  const ids: string[] = [];
  let lost = () => true;
  // Hints may be old: a claim that found nothing has nothing to bring again.
  while (!worker.of("claim.replayed").some(({ jobs }) => jobs !== 0)) {
    if (lost()) lost = isDone(proxy.loseAnswer("client", "claim_by_place"));
    ids.push(...(await enqueueFive(producer)));
    await broker.trial.drained();
  }
  await eachRanOnce(ids);
});

it("window 4: a hint that remains after the job's end brings nothing, and no other job", async () => {
  const window = await broker.openWindow();
  const producer = await broker.connect();
  const { job, runs } = recorded();
  await producer.enqueueMany(job, numbers(20));
  await window.holds(20);
  const hints = await window.hints();
  const direct = await broker.trial.millrace.work([job]);
  await broker.trial.drained();
  await direct.stop();
  // New jobs stand where the old ones were, with hints of their own.
  await broker.trial.db.query("vacuum millrace.job");
  const next = recorded("next");
  await broker.trial.millrace.enqueueMany(next.job, numbers(20));
  const { rows } = await broker.trial.db.query<{ tid: string }>(
    "select ctid::text as tid from millrace.job",
  );
  expect(rows.map(({ tid }) => tid).filter((tid) => hints.some((h) => h.tid === tid))).not.toEqual(
    [],
  );
  expect(await window.size()).toBe(20);
  const consumer = await broker.connect();
  await consumer.work([job, next.job]);
  await window.holds(0);
  await broker.trial.drained();
  expect(runs).toHaveLength(20);
  expect(next.runs.sort()).toEqual(numbers(20).sort());
});

describe("window 5: after the hint", () => {
  it("a cancelled job does not run", async () => {
    const window = await broker.openWindow();
    const producer = await broker.connect();
    const { job, runs } = recorded();
    const [first] = await producer.enqueueMany(job, ["cancelled", "kept"]);
    await window.holds(2);
    await broker.trial.millrace.cancel(first?.id ?? "");
    await (await broker.connect()).work([job]);
    await broker.trial.drained();
    expect(runs).toEqual(["kept"]);
  });

  it("a paused queue keeps its jobs, and gives them when it is resumed", async () => {
    const window = await broker.openWindow();
    const producer = await broker.connect();
    const { job, runs } = recorded();
    await producer.enqueueMany(job, numbers(30));
    await window.holds(30);
    await broker.trial.millrace.pauseQueue("default");
    const consumer = await broker.connect();
    await consumer.work([job]);
    const other = recorded("other", "other");
    await consumer.work([other.job]);
    await producer.result((await producer.enqueue(other.job, 1)).id);
    expect(runs).toEqual([]);
    await window.holds(30);
    await broker.trial.millrace.resumeQueue("default");
    await broker.trial.drained();
    expect(runs.sort()).toEqual(numbers(30).sort());
  });

  it("an expired or moved job is what PostgreSQL says it is", async () => {
    const window = await broker.openWindow();
    const producer = await broker.connect();
    const { job, runs } = recorded();
    await producer.enqueueMany(job, ["expired", "moved", "of another type"]);
    await window.holds(3);
    const edit = (change: string, payload: string) =>
      broker.trial.db.query(`update millrace.job set ${change} where payload::text = $1`, [
        JSON.stringify(payload),
      ]);
    await edit("expires_at = now() - interval '1 s'", "expired");
    await edit("weight = weight + 1", "moved");
    await edit("type = 'unknown'", "of another type");
    const consumer = await broker.connect();
    await consumer.work([job]);
    await until("the moved one has run", () => runs.includes("moved"));
    const other = recorded("unknown");
    await consumer.work([other.job]);
    await broker.trial.drained();
    expect([runs, other.runs]).toEqual([["moved"], ["of another type"]]);
  });
});

describe("window 7: of several hints for one job", () => {
  it("one claim wins", async () => {
    const window = await broker.openWindow();
    const producer = await broker.connect();
    const { job, runs } = recorded();
    await producer.enqueueMany(job, numbers(300));
    await window.holds(300);
    const hints = await window.hints();
    for (let i = 0; i < 3; i++) await (await broker.connect()).work([job], { concurrency: 20 });
    while (runs.length < 300) await window.window.put(hints);
    await broker.trial.drained();
    expect(runs.sort()).toEqual(numbers(300).sort());
  });

  it("those that come while it runs start it no more, wherever it stands", async () => {
    const window = await broker.openWindow();
    const producer = await broker.connect();
    const { job, runs } = recorded();
    const gate = createGate();
    const run: typeof job.run = async (context) => {
      await job.run?.(context);
      await gate.opened;
    };
    await (await broker.connect()).work([{ ...job, run }], { concurrency: 50 });
    await producer.enqueueMany(job, numbers(20));
    await until("all run", () => runs.length === 20);
    const { rows } = await broker.trial.db.query<{ seq: number; tid: string; weight: number }>(
      "select seq::float8 as seq, ctid::text as tid, weight from millrace.job",
    );
    await window.window.put(rows.map((row) => ({ ...row, queueId: window.queueId })));
    await window.holds(0);
    gate.open();
    await broker.trial.drained();
    expect(runs).toHaveLength(20);
  });
});

describe("window 8: a Redis that answers nothing", () => {
  it("keeps neither callers of enqueue nor workers from theirs", async () => {
    const { job, runs } = recorded();
    const [producer, consumer] = [await broker.connect(), await broker.connect()];
    await consumer.work([job]);
    await producer.result((await producer.enqueue(job, "before")).id);
    const told = [producer, consumer].map((one) => dispatchOf(one));
    broker.pauseRedis();
    await until("both do without", async () => {
      await producer.enqueue(job, "during");
      return told.every((words) => words.length === 1);
    });
    await broker.trial.drained();
    broker.resumeRedis();
    await until("both are back", async () => {
      await producer.enqueue(job, "after");
      return told.every((words) => words.length === 2);
    });
    await broker.trial.drained();
    for (const words of told) expect(words).toEqual(["direct", "brokered"]);
    expect(new Set(runs)).toEqual(new Set(["before", "during", "after"]));
  });
});

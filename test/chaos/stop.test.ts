import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Millrace } from "../../src/index.ts";
import { refusal } from "../support/instance.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { chaosJob, Trial } from "../support/trial.ts";
import { until } from "../support/until.ts";

let trial: Trial;
beforeEach(async () => {
  trial = await Trial.create();
});
afterEach(() => trial.close());

test("fault 8: stop lets short jobs finish, gives the rest back unspent, and the process exits", async () => {
  const process = await trial.start({ work: { concurrency: 3, drainMs: 2_000 } });
  const short = await trial.enqueue({ kind: "long", ms: 1_000 });
  const listening = await trial.enqueue({ kind: "long", ms: 600_000 });
  const deaf = await trial.enqueue({ kind: "deaf", ms: 600_000 });
  await until("all run", () => process.of("start").length === 3);
  const waiting = await trial.enqueue({ kind: "quick" });
  process.askToStop();
  await process.ended();
  expect(process.exitCode).toBe(0);
  expect(process.of("stopped")).toHaveLength(1);
  expect(await trial.job(short)).toMatchObject({ state: "completed", attempt: 1 });
  for (const id of [listening, deaf]) {
    const job = await trial.job(id);
    expect(job).toMatchObject({ state: "ready", attempt: 0, crashCount: 0 });
    expect(job.timeline.map((entry) => entry.outcome)).toEqual(["released"]);
    expect(trial.about(id, "abort").map((line) => line.reason)).toEqual(["stopping"]);
  }
  expect(await trial.job(waiting)).toMatchObject({ state: "ready", attempt: 0 });
  expect(process.of("job.settle_refused")).toEqual([]);
  const { rows } = await trial.db.query(
    "select (select count(*)::int from millrace.lease) as leases, (select count(*)::int from millrace.claim) as claims",
  );
  expect(rows).toEqual([{ leases: 0, claims: 0 }]);
});

test("fault 8: stop ends although PostgreSQL stands still, long before a query is given up", async () => {
  const proxy = await TcpProxy.start(trial.url);
  const process = await trial.start({
    connect: { databaseUrl: proxy.url, queryTimeoutMs: 3_600_000, poolSize: 2 },
    work: { drainMs: 500, concurrency: 3 },
  });
  const ids = [];
  for (let n = 0; n < 3; n++)
    ids.push(await trial.enqueue({ kind: "deaf", ms: 600_000, once: true }));
  await until("all run", () => process.of("start").length === 3);
  proxy.silence();
  process.askToStop();
  await process.ended();
  expect(process.exitCode).toBe(0);
  expect(process.of("stopped")).toHaveLength(1);
  await proxy.close();
  await trial.start();
  for (const id of ids) expect(await trial.end(id)).toMatchObject({ state: "completed" });
});

describe("fault 8: in a process without a worker stop ends although PostgreSQL stands still", () => {
  let proxy: TcpProxy;
  let millrace: Millrace;
  beforeEach(async () => {
    proxy = await TcpProxy.start(trial.url);
    millrace = await Millrace.connect({
      ...{ databaseUrl: proxy.url, migrate: false, logLevel: "silent" },
      ...{ queryTimeoutMs: 3_600_000, enqueueTimeoutMs: 3_600_000 },
    });
  });
  afterEach(() => proxy.close());

  test("with calls under way, and others behind them: they fail", async () => {
    const { id } = await millrace.enqueue(chaosJob, { kind: "quick" });
    proxy.silence();
    const calls = [millrace.get(id), millrace.enqueue(chaosJob, { kind: "quick" })].map(refusal);
    // The first is on its way by then, of which nobody tells, and this one waits behind it.
    await delay(50);
    calls.push(refusal(millrace.enqueueMany(chaosJob, [{ kind: "quick" }, { kind: "quick" }])));
    await millrace.stop();
    for (const { code } of await Promise.all(calls)) expect(code).toBe("DATABASE_UNAVAILABLE");
  });

  test("with nothing under way but what it asks by itself", async () => {
    await millrace.enqueue(chaosJob, { kind: "quick" });
    proxy.silence();
    // A moment after a flush it asks who would take jobs, and nobody tells of that.
    await delay(200);
    await millrace.stop();
  });
});

test("fault 8: stop ends although PostgreSQL no longer answers", async () => {
  const proxy = await TcpProxy.start(trial.url);
  const process = await trial.start({
    connect: { databaseUrl: proxy.url },
    work: { drainMs: 500 },
  });
  const id = await trial.enqueue({ kind: "deaf", ms: 600_000, once: true });
  await process.writes("start");
  proxy.refuse();
  process.askToStop();
  await process.ended();
  expect(process.exitCode).toBe(0);
  await proxy.close();
  await trial.start();
  expect(await trial.end(id)).toMatchObject({ state: "completed", crashCount: 1 });
});

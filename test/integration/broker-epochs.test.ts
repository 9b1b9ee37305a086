// Window 6 of docs/design/broker.md: what Redis holds is gone, old, or of another PostgreSQL.

import { appendFile, chown, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Millrace } from "../../src/index.ts";
import { BrokerTrial, numbers, recorded } from "../support/broker-trial.ts";
import { createGate } from "../support/gate.ts";
import { startServer, type TestServer } from "../support/postgres.ts";
import { until } from "../support/until.ts";

let server: TestServer | undefined;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server?.drop());
const broker = BrokerTrial.use({ durable: true, serverUrl: () => server?.url ?? "" });

/** A hundred hinted jobs, and workers that wait for the gate to open. */
async function hundredWaiting() {
  const window = await broker.openWindow();
  const producer = await broker.connect();
  const { job, runs } = recorded();
  const gate = createGate();
  const run: typeof job.run = async (context) => {
    await gate.opened;
    return job.run?.(context);
  };
  const consumers: Millrace[] = [await broker.connect(), await broker.connect()];
  for (const consumer of consumers) await consumer.work([{ ...job, run }], { concurrency: 5 });
  await producer.enqueueMany(job, numbers(100));
  await until("all slots are taken", async () => {
    const { rows } = await broker.trial.db.query("select from millrace.job where claim_id is null");
    return rows.length === 90;
  });
  return { window, producer, consumers, job, runs, gate };
}

async function finishes({ producer, job, runs, gate }: Awaited<ReturnType<typeof hundredWaiting>>) {
  gate.open();
  await until("a job goes through", () => producer.enqueue(job, "later").catch(() => undefined));
  await broker.trial.drained();
  expect(runs.filter((one) => one !== "later").sort()).toEqual(numbers(100).sort());
}

it("everything in Redis is flushed", async () => {
  const waiting = await hundredWaiting();
  await broker.redis.command("FLUSHALL");
  await finishes(waiting);
  expect(await waiting.window.epoch()).not.toBe("null");
});

it("a flush while jobs keep coming is repaired while they do", async () => {
  const { window, producer, job, gate } = await hundredWaiting();
  gate.open();
  await broker.trial.drained();
  await broker.redis.command("FLUSHALL");
  await until("the window is filled again", async () => {
    await producer.enqueue(job, "later");
    return (await window.epoch()) !== "null";
  });
});

it("Redis fails over to a server that knows nothing", async () => {
  const waiting = await hundredWaiting();
  const before = await waiting.window.epoch();
  await broker.redis.kill();
  await broker.redis.start();
  await broker.redis.command("FLUSHALL");
  await finishes(waiting);
  await until("it is filled for the new server", async () => {
    const epoch = await waiting.window.epoch();
    return epoch !== "null" && epoch !== before;
  });
});

it("Redis comes back with its old append-only file", async () => {
  const waiting = await hundredWaiting();
  const { window, producer } = waiting;
  // What this file says is wrong in every way: of jobs that have run, and of some that never were.
  const { queueId } = window;
  await window.window.put(
    numbers(500).map((n) => ({ queueId, weight: 0, seq: n, tid: `(${n},1)` })),
  );
  const before = await window.epoch();
  expect(await window.size()).toBeGreaterThan(499);
  await broker.redis.restart();
  expect(await window.size()).toBeGreaterThan(499);
  await finishes(waiting);
  await until("it was thrown away", async () => {
    await producer.enqueue(waiting.job, "later").catch(() => {});
    return (await window.epoch()) !== before && (await window.size()) < 100;
  });
});

it("PostgreSQL goes on on another timeline", async () => {
  const waiting = await hundredWaiting();
  expect(await waiting.window.epoch()).toContain(".00000001/");
  await startNewTimeline();
  await finishes(waiting);
  await until("the window is filled for it", async () => {
    await waiting.producer.enqueue(waiting.job, "later").catch(() => {});
    return (await waiting.window.epoch()).includes(".00000002/");
  });
  await broker.trial.drained();
});

/** As a promotion does: recovery ends, and what follows is another history. */
async function startNewTimeline(): Promise<void> {
  if (server === undefined) throw new Error("PostgreSQL is not up yet");
  await server.stop();
  const { uid, gid } = await stat(server.dataDir);
  const signal = join(server.dataDir, "recovery.signal");
  await writeFile(signal, "");
  await chown(signal, uid, gid);
  await appendFile(join(server.dataDir, "postgresql.auto.conf"), "restore_command = 'false'\n");
  await server.start();
}

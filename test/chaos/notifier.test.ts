// One notification per final failure, whatever happens to the processes that tell of it.

import pg from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";
import { defineJob, Millrace } from "../../src/index.ts";
import { ask } from "../support/embedded.ts";
import { createGate } from "../support/gate.ts";
import { NotifierProcess } from "../support/notifier-process.ts";
import { createDatabase } from "../support/postgres.ts";
import { cut, Receiver, status } from "../support/receiver.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { shortLease } from "../support/trial.ts";
import { until } from "../support/until.ts";

const webhooks = { allowInsecureLoopback: true };
const soon = { retry: { baseMs: { transient: 50, retryable: 50 }, jitter: 0 } };
const failing = defineJob({
  type: "always.fails",
  maxAttempts: 1,
  run: () => {
    throw new Error("as asked");
  },
});

let database: Awaited<ReturnType<typeof createDatabase>>;
let millrace: Millrace;
let receiver: Receiver;
let processes: NotifierProcess[];

beforeEach(async () => {
  database = await createDatabase();
  const options = { databaseUrl: database.url, logLevel: "silent", webhooks, ...shortLease };
  millrace = await Millrace.connect(options);
  receiver = await Receiver.start();
  receiver.secrets = [(await millrace.webhooks.create({ url: receiver.url })).secret];
  processes = [];
});
afterEach(async () => {
  await Promise.all(processes.map((process) => process.kill()));
  await receiver.close();
  await millrace.stop();
  await database.drop();
});

async function startNotifier(databaseUrl = database.url): Promise<NotifierProcess> {
  const connect = { databaseUrl, migrate: false, webhooks, ...shortLease };
  const process = new NotifierProcess({ connect, start: soon });
  processes.push(process);
  await process.says("ready");
  return process;
}

async function fail(count: number): Promise<string[]> {
  const worker = await millrace.work([failing]);
  const jobs = await millrace.enqueueMany(failing, Array(count).fill({}));
  for (const { id } of jobs) expect((await millrace.waitFor(id)).state).toBe("dead");
  await worker.stop();
  return jobs.map(({ id }) => id);
}

/** Every delivery has completed, and nothing waits to be dispatched. */
async function allTold(): Promise<void> {
  await until("all is told", async () => {
    const queues = await millrace.queues();
    const counts = queues.find(({ name }) => name === "millrace.webhooks")?.counts;
    return counts !== undefined && counts.enqueued > 0 && counts.depth === 0;
  });
}

const jobsOf = (told: Iterable<{ data: Readonly<Record<string, unknown>> }>) =>
  [...told].map(({ data }) => data.job_id).sort();

test("a notifier killed in mid-delivery: the next one delivers under the same id, and it counts once", async () => {
  const gate = createGate();
  receiver.answer = async (response) => {
    await gate.opened;
    response.end();
  };
  const first = await startNotifier();
  const ids = await fail(1);
  await receiver.hears(1);
  await first.kill();
  receiver.answer = status(200);
  await startNotifier();
  await receiver.hears(2);
  await allTold();
  gate.open();
  expect(receiver.refused).toEqual([]);
  expect(receiver.received).toHaveLength(2);
  expect(jobsOf(receiver.distinct.values())).toEqual(ids);
});

test("a notifier killed again and again tells of each of many failures once", async () => {
  const ids = await fail(30);
  for (let heard = 1; heard <= 20; heard += 5) {
    const process = await startNotifier();
    await receiver.hears(heard);
    await process.kill();
  }
  await startNotifier();
  await allTold();
  expect(receiver.refused).toEqual([]);
  expect(jobsOf(receiver.distinct.values())).toEqual(ids.sort());
});

test("a notifier killed while it dispatches: nothing is lost and nothing told twice", async () => {
  const ids = await fail(3);
  const session = new pg.Client({ connectionString: database.url });
  await session.connect();
  // It has deleted the notifications, and waits to insert their deliveries.
  await session.query("begin");
  await session.query("lock table millrace.job in exclusive mode");
  const process = await startNotifier();
  const waiting = `from pg_stat_activity where wait_event_type = 'Lock'
    and query like 'with fence as%' and datname = current_database()`;
  await until("the dispatch waits", async () => {
    const { n } = await ask<{ n: number }>(database.url, `select count(*)::int as n ${waiting}`);
    return n > 0;
  });
  await process.kill();
  // A server that waits for a lock does not see that its client is gone.
  await ask(database.url, `select pg_terminate_backend(pid) ${waiting}`);
  await session.query("rollback");
  await session.end();
  expect(receiver.received).toEqual([]);
  await startNotifier();
  await allTold();
  expect(receiver.received).toHaveLength(3);
  expect(jobsOf(receiver.distinct.values())).toEqual(ids.sort());
});

test("a dispatch whose commit was not answered tells of each failure once", async () => {
  const ids = await fail(3);
  const proxy = await TcpProxy.start(database.url);
  // The first commit of a notifier is that of the three that wait.
  const lost = proxy.loseAnswer("client", "commit");
  await startNotifier(proxy.url);
  await lost;
  await receiver.hears(3);
  await allTold();
  expect(receiver.received).toHaveLength(3);
  expect(jobsOf(receiver.distinct.values())).toEqual(ids.sort());
  await proxy.close();
});

test("two notifiers at once tell of each failure once between them", async () => {
  const both = [await startNotifier(), await startNotifier()];
  const ids = await fail(40);
  await receiver.hears(40);
  await allTold();
  expect(receiver.refused).toEqual([]);
  expect(receiver.received).toHaveLength(40);
  expect(jobsOf(receiver.distinct.values())).toEqual(ids.sort());
  const dispatched = both.flatMap((process) => process.of("notification.dispatched"));
  expect(dispatched).toHaveLength(40);
});

test("a delivery whose answer is lost comes again under the same id, signed anew, and counts once", async () => {
  receiver.answer = cut;
  await startNotifier();
  const ids = await fail(1);
  await receiver.hears(2);
  receiver.answer = status(200);
  await allTold();
  expect(receiver.refused).toEqual([]);
  expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1);
  expect(jobsOf(receiver.distinct.values())).toEqual(ids);
});

test("a failure that nobody could tell of yet is told of when a notifier starts", async () => {
  const ids = await fail(2);
  await startNotifier();
  await allTold();
  expect(jobsOf(receiver.received.map(({ told }) => told))).toEqual(ids.sort());
});

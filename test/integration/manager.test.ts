import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { defineJob, type EventMap, type Manager } from "../../src/index.ts";
import { createScheduler } from "../../src/manager/scheduler.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { Events } from "../../src/runtime/events.ts";
import { Stage } from "../conformance/stage.ts";
import { createGate } from "../support/gate.ts";
import { newQueue, useMillrace } from "../support/instance.ts";
import { startRedis } from "../support/redis-server.ts";
import { openTestStore } from "../support/store.ts";
import { until } from "../support/until.ts";

const instances = useMillrace({ leaderTtlMs: 1_500, leaseMs: 1_500, renewMs: 300 });

const leading = (...managers: Manager[]) =>
  until("one of them is leader", () => managers.find((manager) => manager.isLeader));
const reportOf = (manager: Manager, name: string) =>
  manager.reports.find((report) => report.name === name);

test("of two managers one is leader, and its services say what they do", async () => {
  const [one, two] = [await instances.connect(), await instances.connect()];
  const managers = [await one.manage(), await two.manage()];
  const leader = await leading(...managers);
  const other = managers.find((manager) => manager !== leader);
  expect(other).toMatchObject({ isLeader: false, term: null, reports: [] });
  expect(leader.term).toBeGreaterThan(0);
  const reports = await until("every service has run", () => {
    const { reports } = leader;
    return reports.length > 0 && reports.every(({ lastRunAt }) => lastRunAt !== null) && reports;
  });
  expect(reports.map(({ name }) => name)).toEqual(
    expect.arrayContaining([
      ...["scheduler", "reclaimer", "republisher", "janitor", "trigger runner", "notifier"],
    ]),
  );
  for (const report of reports)
    expect(report).toMatchObject({
      ...{ lastRunAt: expect.any(Date), lastDurationMs: expect.any(Number) },
      ...{ processed: expect.any(Number), errors: 0 },
    });
  await (leader === managers[0] ? one : two).stop();
  if (other === undefined) throw new Error("there were two");
  const next = await leading(other);
  expect(next.term).toBeGreaterThan(leader.term ?? 0);
});

test("the leader makes delayed jobs ready, and counts them", async () => {
  const millrace = await instances.connect();
  const manager = await leading(await millrace.manage());
  const promoted: EventMap["jobs.promoted"][] = [];
  millrace.events.on("jobs.promoted", (event) => promoted.push(event));
  const queue = newQueue();
  const job = defineJob({ type: "delayed", queue, run: () => "ran" });
  // An instance of its own: one that has ever worked goes on with the upkeep while there is no leader.
  await (await instances.connect()).work([job]);
  const { id } = await instances.millrace.enqueue(job, {}, { delayMs: 100 });
  expect(await instances.millrace.result(id)).toBe("ran");
  await until("it is counted", () => (reportOf(manager, "scheduler")?.processed ?? 0) > 0);
  expect(promoted.flatMap(({ latenessMs }) => latenessMs).length).toBeGreaterThan(0);
});

test("the leader fires triggers, though no worker runs", async () => {
  const millrace = await instances.connect();
  const manager = await leading(await millrace.manage());
  const fired = millrace.events.once("trigger.fired");
  const job = defineJob({ type: "slot", queue: newQueue(), run: () => {} });
  const made = await instances.millrace.triggers.create({
    ...{ name: job.queue, type: "TIME", cron: "* * * * * *", job },
  });
  const { id, jobIds } = await fired;
  expect(id).toBe(made.id);
  expect(await instances.millrace.get(jobIds[0] ?? "")).toMatchObject({ type: "slot" });
  await instances.millrace.triggers.disable(made.id);
  expect(reportOf(manager, "trigger runner")?.errors).toBe(0);
});

test("two schedulers with no election between them promote each job once", async () => {
  // A store that no worker looks after as well.
  const opened = await openTestStore();
  const stage = new Stage(opened);
  const jobs = stage.jobs(await stage.queue(), 1_000, { delayMs: 3_600_000 });
  await stage.put(...jobs);
  await stage.sql("update millrace.scheduled_job set due_at = now()");
  const events = new Events();
  const promoted: number[] = [];
  events.on("jobs.promoted", (event) => promoted.push(event.jobs));
  const sum = () => promoted.reduce((a, b) => a + b, 0);
  const schedulers = Array.from({ length: 2 }, () => {
    const session = stage.store.upkeep();
    const loop = createScheduler({
      ...{ session, events, clock: systemClock, random: Math.random, floorMs: 50, batch: 7 },
      ...{ isWanted: async () => true, onReady: () => {} },
    });
    return { loop, session };
  });
  for (const { loop } of schedulers) await loop.start();
  await until("all are ready", () => sum() >= jobs.length);
  for (const { loop, session } of schedulers) {
    await loop.stop();
    await session.close();
  }
  expect(sum()).toBe(jobs.length);
  const rows = await stage.sql("select count(*)::int as n from millrace.job");
  expect(rows).toEqual([{ n: jobs.length }]);
  for (const { loop } of schedulers) expect(loop.report.processed).toBeGreaterThan(0);
  await stage.close();
});

test("the reclaimer waits one lease after a change of leader, then takes back what lapsed", async () => {
  const leaseMs = 6_000;
  // Long enough that no stall of the machine costs it its term: another one would wait, and tell, once more.
  const leaderTtlMs = 10_000;
  const millrace = await instances.connect({ leaseMs, reclaimMs: 100, leaderTtlMs });
  const waits: string[] = [];
  millrace.events.on("reclaim.waited", ({ reason }) => waits.push(reason));
  const lapsed = millrace.events.once("job.lapsed");
  const queue = newQueue();
  const job = defineJob({ type: "lost", queue });
  const { id } = await millrace.enqueue(job, {});
  const [row] = await instances.query<{ id: number }>(
    "select id from millrace.queue where name = $1",
    [queue],
  );
  const leaseId = randomUUID();
  const session = millrace.store.lease("gone");
  await session.open({ leaseId, worker: "gone", leaseMs: 1, info: {} });
  const worker = millrace.store.worker("gone");
  const { jobs } = await worker.turn({
    ...{ worker: "gone", process: randomUUID(), completions: [], finishedClaims: [] },
    claim: {
      ...{ claimId: randomUUID(), leaseId, limit: 1, types: null, queueIds: [row?.id ?? 0] },
      ...{ hints: null, suspect: true },
    },
  });
  expect(jobs.map((one) => one.id)).toEqual([id]);
  // The lease is over before there is a leader: one that has just been elected finds it so.
  const manager = await leading(await millrace.manage());
  expect((await lapsed).id).toBe(id);
  // Told once, however many rounds it waits.
  expect(waits.filter((reason) => reason !== "server_restarted")).toEqual(["leader_changed"]);
  const [elected] = await instances.query<{ ms: number }>(
    "select (extract(epoch from now() - elected_at) * 1000)::float8 as ms from millrace.leader where term = $1",
    [manager.term],
  );
  expect(elected?.ms).toBeGreaterThanOrEqual(leaseMs);
  await session.close();
  await worker.close();
});

test("while Redis is away jobs stay ready in PostgreSQL and run; when it is back its windows are refilled", async () => {
  const redis = await startRedis();
  const queue = newQueue();
  const gate = createGate();
  const hold = defineJob({ type: "hold", queue, run: () => gate.opened });
  const options = { redisUrl: redis.url };
  const millrace = await instances.connect(options);
  const brokered = millrace.events.once("dispatch.brokered");
  const manager = await leading(await millrace.manage());
  await brokered;
  await redis.kill();
  await instances.millrace.enqueue(hold, 0); // creates the queue
  const ids = (await instances.millrace.enqueueMany(hold, [1, 2, 3, 4, 5], { delayMs: 50 })).map(
    ({ id }) => id,
  );
  await until("all are ready", async () => {
    const jobs = await instances.millrace.store.find(ids);
    return jobs.length === ids.length && jobs.every(({ state }) => state === "ready");
  });
  expect(reportOf(manager, "scheduler")?.errors).toBe(0);
  expect(reportOf(manager, "republisher")?.errors).toBe(0);
  const own = (await millrace.queues()).find(({ name }) => name === queue)?.id;
  const refilled = millrace.events.once("window.refilled", ({ queueId }) => queueId === own);
  await redis.start();
  expect((await refilled).hints).toBeGreaterThanOrEqual(ids.length);
  await redis.kill();
  gate.open();
  const worker = await millrace.work([hold]);
  for (const id of ids) await millrace.result(id);
  await worker.stop();
  await redis.drop();
});

test("a manager that has been stopped leads no more, and Millrace stops its managers", async () => {
  const millrace = await instances.connect();
  const manager = await leading(await millrace.manage());
  const { term } = manager;
  await millrace.stop();
  expect(manager).toMatchObject({ isLeader: false, term: null });
  const leadership = await instances.millrace.store.leadership();
  expect(leadership).toMatchObject({ term, inOffice: false });
  await expect(millrace.manage()).rejects.toMatchObject({ code: "STOPPED" });
});

test("a manager that has been stopped says so when it is started again", async () => {
  const millrace = await instances.connect();
  const stopped = { code: "STOPPED" };
  const manager = await leading(await millrace.manage());
  await Promise.all([manager.start(), manager.start()]);
  await Promise.all([manager.stop(), manager.stop()]);
  await expect(manager.start()).rejects.toMatchObject(stopped);
  // Another one takes its place.
  const next = await leading(await millrace.manage());
  const late = millrace.manage();
  const stopping = millrace.stop();
  await expect(late).rejects.toMatchObject(stopped);
  await stopping;
  await expect(next.start()).rejects.toMatchObject(stopped);
  expect(next.isLeader).toBe(false);
});

import { afterEach, beforeEach, expect, test } from "vitest";
import { expectEachDelayedOnce } from "../support/delayed-jobs.ts";
import { runsOf } from "../support/ledger.ts";
import { chaosJob, Trial } from "../support/trial.ts";
import { until } from "../support/until.ts";
import type { WorkerProcess } from "../support/worker-process.ts";

let trial: Trial;
beforeEach(async () => {
  trial = await Trial.create();
});
afterEach(() => trial.close());

test("two managers and four workers run 2,000 delayed jobs once each", async () => {
  await expectEachDelayedOnce({ jobs: 2_000, spreadMs: 3_000 });
});

const spread = async (jobs: number) => {
  const payloads = Array.from({ length: jobs }, () => ({ kind: "quick" as const }));
  await trial.millrace.enqueueMany(chaosJob, payloads, (_, i) => ({ delayMs: 50 + 20 * i }));
};

const promotedBy = (process: WorkerProcess) =>
  process.of("jobs.promoted").flatMap((line) => line.latenessMs ?? []).length;

test("a leader killed while it schedules loses no job and doubles none", async () => {
  const connect = { leaderTtlMs: 1_500 };
  const leader = await trial.startManager({ connect });
  await leader.writes("leader.elected");
  const next = await trial.startManager({ connect });
  await trial.start({ connect });
  await spread(400);
  await leader.writes("jobs.promoted");
  await leader.kill();
  await trial.drained();
  const runs = runsOf(trial.ledger());
  expect(runs).toHaveLength(400);
  expect(new Set(runs.map(({ job }) => job)).size).toBe(400);
  expect(next.of("leader.elected").length).toBeGreaterThan(0);
});

test("workers schedule while there is no leader, and stand back when there is one", async () => {
  const worker = await trial.start();
  await spread(50);
  await trial.drained();
  await until("the worker made them ready", () => promotedBy(worker) === 50);
  const leader = await trial.startManager();
  await leader.writes("leader.elected");
  // The worker looks at the office once a second at most: what it did not see, it may still do.
  await trial.enqueue({ kind: "fail", once: true });
  await trial.drained();
  const before = promotedBy(worker);
  await spread(50);
  await trial.drained();
  await until("the leader made them ready", () => promotedBy(leader) >= 50);
  expect(promotedBy(worker)).toBe(before);
});

test("a worker announces its retries to the leader, which would not look for hours", async () => {
  const connect = { pollMs: 3_600_000 };
  const leader = await trial.startManager({ connect });
  await leader.writes("leader.elected");
  const worker = await trial.start({ connect });
  const id = await trial.enqueue({ kind: "fail", once: true });
  expect(await trial.end(id)).toMatchObject({ state: "completed", attempt: 2 });
  await until("the leader made it ready", () => promotedBy(leader) === 1);
  expect(promotedBy(worker)).toBe(0);
});

test("P5: the jobs of a killed worker run elsewhere under a leader, and when leader and worker die together", async () => {
  const connect = { leaderTtlMs: 1_000 };
  const leader = await trial.startManager({ connect });
  await leader.writes("leader.elected");
  const [victim, second] = [await trial.start({ connect }), await trial.start({ connect })];
  const first = await trial.enqueue({ kind: "long", ms: 600_000, once: true });
  const start = await until("it runs", () => trial.about(first, "start")[0]);
  const [killed, other] = start.proc === victim.name ? [victim, second] : [second, victim];
  await killed.kill();
  expect(await trial.end(first)).toMatchObject({ state: "completed", crashCount: 1 });
  await leader.writes("job.lapsed", (line) => line.job === first);
  const last = await trial.enqueue({ kind: "long", ms: 600_000, once: true });
  await other.writes("start", (line) => line.job === last);
  const survivor = await trial.start({ connect });
  await Promise.all([leader.kill(), other.kill()]);
  expect(await trial.end(last)).toMatchObject({ state: "completed", crashCount: 1 });
  await survivor.writes("job.lapsed", (line) => line.job === last);
});

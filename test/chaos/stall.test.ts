import { afterEach, beforeEach, expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import { shortLease, Trial } from "../support/trial.ts";

let trial: Trial;
beforeEach(async () => {
  trial = await Trial.create();
});
afterEach(() => trial.close());

test.each([
  ["completion", "stubborn", "completed"],
  ["failure", "long", "retried"],
] as const)(
  "fault 6: a process stopped past its lease wakes up aborted, its late %s refused",
  async (_, kind, outcome) => {
    const stalled = await trial.start();
    const then = { kind: "hold" } as const;
    const id = await trial.enqueue({ kind, ms: 600_000, once: true, then });
    await stalled.writes("start");
    stalled.signal("SIGSTOP");
    const other = await trial.start();
    await other.writes("start");
    // The other one is at work on it when the first one writes.
    stalled.signal("SIGCONT");
    const refused = await stalled.writes("job.settle_refused");
    expect(refused).toMatchObject({ job: id, outcome });
    expect(other.of("end")).toEqual([]);
    expect(stalled.of("abort")).toMatchObject([{ job: id, reason: "lease_lost" }]);
    other.release();
    const job = await trial.end(id);
    expect(job).toMatchObject({ state: "completed", attempt: 2, crashCount: 1 });
    expect(job.result).toMatchObject({ by: other.name, token: other.of("start")[0]?.token });
    expect(await trial.historyRows(id)).toBe(1);
    expect(trial.about(id, "start")).toHaveLength(2);
  },
);

test("fault 6: what it claims after waking is not held under the lease it has lost", async () => {
  const stalled = await trial.start();
  const id = await trial.enqueue({ kind: "deaf", ms: 3_000, once: true });
  await stalled.writes("start");
  stalled.signal("SIGSTOP");
  // With one slot it offers nothing: what comes while it dies is not handed to it.
  const other = await trial.start({ work: { concurrency: 1 } });
  await trial.end(id);
  await other.kill();
  const ids = await trial.enqueueMany(20, () => ({ kind: "long", ms: 700 }));
  stalled.signal("SIGCONT");
  await trial.drained();
  for (const one of ids) {
    expect(await trial.job(one)).toMatchObject({ state: "completed", attempt: 1, crashCount: 0 });
  }
});

test("fault 7: an event loop blocked for two leases loses its jobs to others, once each", async () => {
  const blocked = await trial.start();
  const listening = await trial.enqueue({ kind: "long", ms: 600_000, once: true });
  await blocked.writes("start", (line) => line.job === listening);
  const blocking = await trial.enqueue({ kind: "block", ms: 2 * shortLease.leaseMs, once: true });
  await blocked.writes("start", (line) => line.job === blocking);
  await trial.start();
  for (const id of [listening, blocking]) {
    const job = await trial.end(id);
    expect(job).toMatchObject({ state: "completed", attempt: 2, crashCount: 1 });
  }
  for (const id of [listening, blocking]) {
    await blocked.writes("job.settle_refused", (line) => line.job === id);
    expect(await trial.historyRows(id)).toBe(1);
  }
  expect(trial.about(listening, "abort")).toMatchObject([{ reason: "lease_lost" }]);
  expect(blocked.of("lease.lost")).toHaveLength(1);
});

test("fault 36: a handler that runs many leases long is never delivered again", async () => {
  const first = await trial.start();
  const id = await trial.enqueue({ kind: "long", ms: 4 * shortLease.leaseMs });
  await first.writes("start");
  await trial.start();
  const job = await trial.end(id);
  expect(job).toMatchObject({ state: "completed", attempt: 1, crashCount: 0 });
  expect(job.result).toMatchObject({ by: first.name });
  expect(trial.about(id, "start")).toHaveLength(1);
  expect(trial.ledger().filter((line) => line.what === "job.lapsed")).toEqual([]);
});

const limited = defineJob({ type: "chaos", maxRuntimeMs: 1_000, maxAttempts: 1 });

test("fault 37: a handler that hangs while its lease is renewed ends by its maxRuntimeMs", async () => {
  const process = await trial.start();
  const { id } = await trial.millrace.enqueue(limited, { kind: "deaf", ms: 600_000 });
  const job = await trial.end(id);
  expect(job).toMatchObject({ state: "dead", attempt: 1, crashCount: 0 });
  expect(job.error?.message).toContain("longer than");
  await process.writes("abort", (line) => line.job === id && line.reason === "max_runtime");
  expect(process.of("lease.lost")).toEqual([]);
});

test("fault 37: a process that stands still beyond its lease has crashed, whatever the limit of its runs", async () => {
  const stopped = await trial.start();
  const { id } = await trial.millrace.enqueue(limited, { kind: "deaf", ms: 600_000, once: true });
  await stopped.writes("start");
  stopped.signal("SIGSTOP");
  await trial.start();
  const job = await trial.end(id);
  expect(job).toMatchObject({ state: "completed", attempt: 2, crashCount: 1 });
  stopped.signal("SIGCONT");
  await stopped.writes("job.settle_refused", (line) => line.job === id);
  expect(await trial.job(id)).toEqual(job);
});

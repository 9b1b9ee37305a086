// Many processes on one backlog: every job is run and completed once, and no two runs overlap.

import { expect } from "vitest";
import { count, overlaps, runsOf } from "./ledger.ts";
import { Trial } from "./trial.ts";

export async function expectEachCompletedOnce(options: {
  readonly processes: number;
  readonly jobs: number;
}): Promise<void> {
  const trial = await Trial.create();
  try {
    // Leases of the usual length: this is about claims, not about stalls of a busy machine.
    const connect = { leaseMs: 15_000, renewMs: 5_000 };
    const half = Math.floor(options.jobs / 2);
    const ids = await trial.enqueueMany(half, () => ({ kind: "quick" }));
    await Promise.all(Array.from({ length: options.processes }, () => trial.start({ connect })));
    ids.push(...(await trial.enqueueMany(options.jobs - half, () => ({ kind: "quick" }))));
    await trial.drained(options.jobs * 10 + 60_000);
    const ledger = trial.ledger();
    const runs = runsOf(ledger);
    expect(runs.filter((run) => !run.ended)).toEqual([]);
    expect(overlaps(runs)).toEqual([]);
    expect(count(ledger, "job.lapsed")).toBe(0);
    expect(count(ledger, "job.settle_refused")).toBe(0);
    expect(runs.length).toBe(options.jobs);
    expect(new Set(runs.map((run) => run.job)).size).toBe(options.jobs);
    expect(new Set(runs.map((run) => run.proc)).size).toBeGreaterThan(1);
    expect(new Set(ids).size).toBe(options.jobs);
    const { rows } = await trial.db.query<{ all: number; completed: number }>(
      `select count(*)::int as all, count(distinct id) filter (where state = 'completed')::int as completed
      from millrace.history`,
    );
    expect(rows).toEqual([{ all: options.jobs, completed: options.jobs }]);
  } finally {
    await trial.close();
  }
}

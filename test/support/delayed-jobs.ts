// Managers and workers on delayed jobs: each becomes ready and runs once, and how late.

import { expect } from "vitest";
import { overlaps, runsOf } from "./ledger.ts";
import { chaosJob, Trial } from "./trial.ts";
import { until } from "./until.ts";

export async function expectEachDelayedOnce(options: {
  readonly jobs: number;
  /** The jobs fall due over this time. */
  readonly spreadMs: number;
}): Promise<void> {
  const { jobs, spreadMs } = options;
  const trial = await Trial.create();
  try {
    // Leases and terms of the usual length: this is about schedules, not about stalls.
    const connect = { leaseMs: 15_000, renewMs: 5_000, pollMs: 5_000 };
    const managers = [await trial.startManager({ connect }), await trial.startManager({ connect })];
    await Promise.race(managers.map((manager) => manager.writes("leader.elected")));
    await Promise.all(Array.from({ length: 4 }, () => trial.start({ connect })));
    const payloads = Array.from({ length: jobs }, () => ({ kind: "quick" as const }));
    const sent = await trial.millrace.enqueueMany(chaosJob, payloads, (_, i) => ({
      delayMs: 500 + Math.round((spreadMs * i) / jobs),
    }));
    await trial.drained(spreadMs + jobs * 10 + 60_000);
    const ledger = trial.ledger();
    const runs = runsOf(ledger);
    expect(runs.filter((run) => !run.ended)).toEqual([]);
    expect(overlaps(runs)).toEqual([]);
    expect(new Set(runs.map((run) => run.job)).size).toBe(jobs);
    expect(runs.length).toBe(jobs);
    expect(new Set(runs.map((run) => run.job))).toEqual(new Set(sent.map(({ id }) => id)));
    const promotions = await until("each job was made ready once, and no more", () => {
      const lines = trial.ledger().filter((line) => line.what === "jobs.promoted");
      return lines.flatMap((line) => line.latenessMs ?? []).length >= jobs && lines;
    });
    const latenessMs = promotions.flatMap((line) => line.latenessMs ?? []);
    expect(latenessMs).toHaveLength(jobs);
    latenessMs.sort((a, b) => a - b);
    const at = (share: number) => latenessMs[Math.floor(share * (jobs - 1))];
    const by = [...new Set(promotions.map((line) => line.proc))];
    console.log(JSON.stringify({ jobs, p50Ms: at(0.5), p99Ms: at(0.99), maxMs: at(1), by }));
  } finally {
    await trial.close();
  }
}

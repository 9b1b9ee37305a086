// Judgements over ledgers alone: what the handlers themselves saw.

import type { LedgerLine } from "./worker-process.ts";

export interface Run {
  readonly job: string;
  readonly token: string;
  readonly proc: string;
  readonly from: number;
  /** When the handler ended, or the moment it was told that the job is no longer its own. */
  readonly to: number;
  readonly ended: boolean;
}

/** Each run with the time in which its handler might have acted for the job. */
export function runsOf(lines: readonly LedgerLine[]): Run[] {
  const runs = new Map<string, { -readonly [K in keyof Run]: Run[K] }>();
  for (const { what, job, token, proc, t } of lines) {
    if (job === undefined || token === undefined) continue;
    const key = `${job} ${token}`;
    if (what === "start") {
      if (runs.has(key)) throw new Error(`${job} was started twice under ${token}`);
      runs.set(key, { job, token, proc, from: t, to: Number.POSITIVE_INFINITY, ended: false });
    }
    const run = runs.get(key);
    if (run === undefined || (what !== "end" && what !== "abort")) continue;
    run.to = Math.min(run.to, t);
    if (what === "end") run.ended = true;
  }
  return [...runs.values()];
}

/** Pairs of runs of one job that were under way at the same time. */
export function overlaps(runs: readonly Run[]): [Run, Run][] {
  const byJob = new Map<string, Run[]>();
  for (const run of runs) byJob.set(run.job, [...(byJob.get(run.job) ?? []), run]);
  const found: [Run, Run][] = [];
  for (const sameJob of byJob.values()) {
    sameJob.sort((a, b) => a.from - b.from);
    for (const [i, run] of sameJob.entries()) {
      const next = sameJob[i + 1];
      if (next !== undefined && next.from < run.to) found.push([run, next]);
    }
  }
  return found;
}

/** How many handlers of these lines were under way together, at most. */
export function mostAtOnce(lines: readonly LedgerLine[]): number {
  let now = 0;
  let most = 0;
  for (const { what } of lines) {
    if (what === "start") most = Math.max(most, ++now);
    if (what === "end") now--;
  }
  return most;
}

export function count(lines: readonly LedgerLine[], what: string): number {
  return lines.filter((line) => line.what === what).length;
}

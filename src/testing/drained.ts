// What drain() tells about the runs it saw.

import type { Millrace } from "../client/millrace.ts";
import { MillraceError } from "../domain/errors.ts";
import type { Job } from "../domain/job.ts";
import type { Outcome } from "../domain/outcome.ts";
import type { AnyJobDefinition, Handler } from "../worker/job-definition.ts";
import type { Worker } from "../worker/worker.ts";

/** One run of one job. */
export interface DrainedRun {
  /** The job as it was when everything had run. */
  readonly job: Job;
  readonly attempt: number;
  readonly outcome: Outcome["kind"];
  /** What the handler threw (the very object), or why the job could not be run. */
  readonly error: unknown;
}

export interface Drained {
  readonly runs: readonly DrainedRun[];
  /** How far virtual time was moved on. */
  readonly advancedMs: number;
  /** Jobs that still wait: due later, in a paused queue, or of a type that was not given. */
  readonly waiting: number;
}

export interface Note {
  readonly id: string;
  readonly attempt: number;
  readonly outcome: Outcome;
}

export function remembering(
  definition: AnyJobDefinition,
  thrown: Map<string, unknown>,
): AnyJobDefinition {
  const run = definition.run as Handler<unknown, unknown> | undefined;
  if (run === undefined) return definition;
  const remembered: Handler<unknown, unknown> = async (context) => {
    try {
      return await run(context);
    } catch (error) {
      thrown.set(runKey(context.job), error);
      throw error;
    }
  };
  return { ...definition, run: remembered } as AnyJobDefinition;
}

const runKey = ({ id, attempt }: { id: string; attempt: number }) => `${id}/${attempt}`;

export async function describeRuns(
  notes: readonly Note[],
  thrown: ReadonlyMap<string, unknown>,
  millrace: Millrace,
): Promise<DrainedRun[]> {
  const jobs = await millrace.store.find([...new Set(notes.map(({ id }) => id))]);
  const byId = new Map(jobs.map((job) => [job.id, job]));
  return notes.flatMap((note) => {
    const job = byId.get(note.id);
    if (job === undefined) return [];
    const { attempt, outcome } = note;
    const given = "error" in outcome ? new Error(outcome.error.message) : null;
    const error = given === null ? null : (thrown.get(runKey(note)) ?? given);
    return [{ job, attempt, outcome: outcome.kind, error }];
  });
}

export function endless(notes: readonly Note[]): MillraceError {
  return new MillraceError(
    "TIMEOUT",
    `drain() gave up after ${notes.length} runs: a job retries, snoozes or enqueues itself for ever, ` +
      `or there are simply more (raise maxRuns).${lastError(notes)}`,
    { details: { runs: notes.length } },
  );
}

export function tooSlow(timeoutMs: number, left: number, worker: Worker, notes: readonly Note[]) {
  return new MillraceError(
    "TIMEOUT",
    `drain() gave up after ${timeoutMs} ms and ${notes.length} runs: ${worker.busy} handler(s) still ` +
      `run, ${left} job(s) are left (raise timeoutMs if that is right).${lastError(notes)}`,
    { details: { runs: notes.length, running: worker.busy, left } },
  );
}

function lastError(notes: readonly Note[]): string {
  const failed = notes.findLast(({ outcome }) => "error" in outcome)?.outcome;
  return failed !== undefined && "error" in failed
    ? ` The last error: ${failed.error.message}`
    : "";
}

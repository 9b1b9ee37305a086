import {
  checkOptions,
  checkSignal,
  checkWait,
  type Known,
  knownNames,
} from "../domain/check-options.ts";
import { fromCaller, MillraceError } from "../domain/errors.ts";
import type { Job } from "../domain/job.ts";
import { isTerminal } from "../domain/job-state.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";

export interface ResultOptions {
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export interface ResultContext {
  readonly find: (id: string) => Promise<Job | null>;
  readonly clock: Clock;
  readonly random: () => number;
  readonly events: Events;
}

const usualMs = 60_000;

const known = knownNames({ timeoutMs: true, signal: true } satisfies Known<ResultOptions>);

/** Waits until the job has ended. A run that ends in this process is seen at once, others by polling. */
export async function waitForEnd(
  id: string,
  options: ResultOptions,
  context: ResultContext,
): Promise<Job> {
  checkOptions("the wait for a job", options, known);
  checkWait("timeoutMs", options.timeoutMs);
  checkSignal(options.signal);
  const { clock, random, events } = context;
  const deadline = clock.monotonic() + (options.timeoutMs ?? usualMs);
  for (let tries = 0; ; tries++) {
    const woken = new AbortController();
    const off = events.on("job.settled", (event) => {
      if (event.id === id) woken.abort();
    });
    try {
      const job = await context.find(id);
      if (job === null) throw new MillraceError("JOB_NOT_FOUND", `There is no job ${id}.`);
      if (isTerminal(job.state)) return job;
      const left = deadline - clock.monotonic();
      if (options.signal?.aborted) throw options.signal.reason;
      if (left <= 0)
        throw fromCaller(
          new MillraceError("TIMEOUT", stillWaiting(job, options.timeoutMs ?? usualMs), {
            details: { state: job.state },
          }),
        );
      const pause = Math.min(500, 10 * 2 ** Math.min(tries, 6)) * (0.7 + 0.6 * random());
      const signals =
        options.signal === undefined
          ? woken.signal
          : AbortSignal.any([woken.signal, options.signal]);
      await clock.sleep(Math.min(pause, left), signals);
    } finally {
      off();
    }
  }
}

/** Uncaught, it is all that somebody reads who has no worker running. */
function stillWaiting({ id, state }: Job, waitedMs: number): string {
  const waited = waitedMs < 1_000 ? `${waitedMs} ms` : `${Math.round(waitedMs / 1_000)} s`;
  const hint = state === "running" ? "" : ` Is a worker running? npx millrace explain ${id} says.`;
  return `Job ${id} is still ${state} after ${waited}.${hint}`;
}

export function resultOf(job: Job): unknown {
  if (job.state === "completed") return job.result;
  throw new MillraceError("JOB_FAILED", job.error?.message ?? `Job ${job.id} is ${job.state}.`, {
    details: { state: job.state, errorClass: job.error?.class ?? null },
  });
}

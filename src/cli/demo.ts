// Something to watch: a producer that makes jobs of many kinds at a steady rate, and a worker for them.

import type { Millrace } from "../client/millrace.ts";
import type { EnqueueOptions } from "../client/new-job.ts";
import { systemClock } from "../runtime/clock.ts";
import type { JobDefinition } from "../worker/job-definition.ts";
import type { Worker } from "../worker/worker.ts";
import {
  charge,
  demoJobs,
  importAccount,
  importPage,
  invoice,
  makeReport,
  prepareDemo,
  remind,
  sendMail,
} from "./demo-jobs.ts";

interface Wish {
  readonly job: JobDefinition<unknown, never, unknown>;
  readonly options: EnqueueOptions;
}

/** One round of what the producer enqueues; in every tenth an account is not found. */
const round: readonly Wish[] = [
  ...["high", "normal", "low", "normal", "high", "normal", "low"].map((priority) => ({
    job: sendMail,
    options: { priority },
  })),
  { job: remind, options: { delayMs: 3_000 } },
  { job: makeReport, options: { tenant: "acme", priority: "low" } },
  { job: charge, options: { tenant: "acme", priority: "high" } },
  { job: importPage, options: {} },
  { job: charge, options: { tenant: "globex" } },
  { job: makeReport, options: { tenant: "globex" } },
  { job: invoice, options: {} },
];
const hopelessEvery = 10;
const pauseMs = 100;
const mostAtOnce = 1_000;
const drainMs = 10_000;

export interface Demo {
  readonly worker: Worker;
  stop(): Promise<void>;
}

export async function startDemo(millrace: Millrace, jobsPerSecond: number): Promise<Demo> {
  await prepareDemo(millrace);
  const concurrency = Math.min(1_000, 10 + Math.ceil(jobsPerSecond / 5));
  const worker = await millrace.work(demoJobs, { concurrency, drainMs });
  const stopped = new AbortController();
  const producing = produce(millrace, jobsPerSecond, stopped.signal);
  return {
    worker,
    async stop() {
      stopped.abort();
      await producing;
      await worker.stop();
    },
  };
}

async function produce(millrace: Millrace, rate: number, stopped: AbortSignal): Promise<void> {
  const started = systemClock.monotonic();
  let made = 0;
  while (!stopped.aborted) {
    const owed = Math.floor(((systemClock.monotonic() - started) / 1_000) * rate) - made;
    const count = Math.min(owed, mostAtOnce);
    const sent = Array.from({ length: count }, (_, i) => enqueueNext(millrace, made + i));
    // The database may be away for a moment; the next ones will tell.
    await Promise.allSettled(sent);
    // What could not be made in time is not made up for.
    made += Math.max(owed, 0);
    await systemClock.sleep(pauseMs, stopped);
  }
}

function enqueueNext(millrace: Millrace, n: number): Promise<unknown> {
  const isHopeless = n % (round.length * hopelessEvery) === round.length;
  const { job, options } = round[n % round.length] ?? { job: sendMail, options: {} };
  return isHopeless
    ? millrace.enqueue(importAccount, { n })
    : millrace.enqueue(job, { n }, options);
}

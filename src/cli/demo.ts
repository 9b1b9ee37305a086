// Something to watch: jobs that are quick, slow, delayed, flaky and hopeless, at a steady rate.

import type { Millrace } from "../client/millrace.ts";
import { NonRetryableError } from "../domain/error-class.ts";
import { systemClock } from "../runtime/clock.ts";
import { defineJob } from "../worker/job-definition.ts";
import type { Worker } from "../worker/worker.ts";

const queue = "demo";

const quick = defineJob({ type: "demo.quick", queue, run: () => "done" });

const slow = defineJob({
  type: "demo.slow",
  queue,
  run: async ({ signal }) => systemClock.sleep(200 + 600 * Math.random(), signal),
});

const flaky = defineJob({
  type: "demo.flaky",
  queue,
  retry: { baseMs: { retryable: 1_000 } },
  run({ attempt }) {
    if (attempt < 3 && Math.random() < 0.7) throw new Error("The other side did not answer.");
  },
});

const delayed = defineJob({ type: "demo.delayed", queue, run: () => "on time" });

const hopeless = defineJob({
  type: "demo.hopeless",
  queue,
  run() {
    throw new NonRetryableError("There is no such account.");
  },
});

/** One round of what the producer enqueues; the hopeless one comes in every tenth round. */
const round = [
  ...["high", "normal", "low", "normal", "high", "normal", "low", "normal"].map((priority) => ({
    job: quick,
    options: { priority },
  })),
  { job: delayed, options: { delayMs: 3_000 } },
  { job: slow, options: {} },
  { job: flaky, options: {} },
  { job: slow, options: { priority: "low" } },
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
  await millrace.configureQueue(queue, { retentionDays: 1 });
  const concurrency = Math.min(1_000, 10 + Math.ceil(jobsPerSecond / 5));
  const worker = await millrace.work([quick, slow, flaky, delayed, hopeless], {
    concurrency,
    drainMs,
  });
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
  const { job, options } = round[n % round.length] ?? { job: quick, options: {} };
  return millrace.enqueue(isHopeless ? hopeless : job, { n }, options);
}

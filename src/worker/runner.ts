// The runs of one worker: delivered jobs wait here, start as slots come free, and end in the settler.

import type { Outcome } from "../domain/outcome.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import type { AbortCause } from "./abort-handle.ts";
import type { Executor } from "./executor.ts";
import { type HeldJob, type HeldJobs, runningJob } from "./held-jobs.ts";
import { RunTimes } from "./room.ts";
import type { Settler } from "./settler.ts";

export interface RunnerOptions {
  readonly executor: Executor;
  readonly held: HeldJobs;
  readonly settler: Settler;
  readonly concurrency: number;
  /** False while it is not known whether the jobs are still ours. */
  readonly mayStart: () => boolean;
  readonly onEnded: () => void;
  readonly clock: Clock;
  readonly events: Events;
}

export class Runner {
  readonly #options: RunnerOptions;
  #waiting: HeldJob[] = [];
  #running = 0;
  #starting = false;
  readonly #times = new RunTimes();

  constructor(options: RunnerOptions) {
    this.#options = options;
  }

  /** Jobs that run or wait for a slot. */
  get taken(): number {
    return this.#running + this.#waiting.length;
  }

  /** On average, of the slowest type. */
  get runMs(): number {
    return this.#times.slowestMs;
  }

  /** They take their places; `startWaiting` starts them. */
  accept(jobs: readonly HeldJob[]): void {
    this.#waiting.push(...jobs);
  }

  /** After a stall nothing starts until a renewal has said whose the jobs are. */
  startWaiting(): void {
    // A run that ends at once asks for the next one from within this loop.
    if (this.#starting) return;
    this.#starting = true;
    const { concurrency, mayStart } = this.#options;
    let next = 0;
    while (this.#running < concurrency && next < this.#waiting.length && mayStart()) {
      const held = this.#waiting[next++];
      if (held !== undefined) this.#run(held);
    }
    this.#waiting.splice(0, next);
    this.#starting = false;
  }

  release(jobs: readonly HeldJob[] = this.#waiting.splice(0)): void {
    for (const { job } of jobs) {
      this.#options.settler.add({ job, outcome: { kind: "released" }, durationMs: 0 });
    }
    this.#options.onEnded();
  }

  /** The deadline is over: signals abort and the jobs go back unspent, whether handlers listen or not. */
  releaseRunning(): number {
    const running = this.#options.held.all().filter((held) => held.started);
    this.abort("stopping", (held) => held.started);
    for (const held of running) this.#end(held, { kind: "released" });
    return running.length;
  }

  /** The lease is over, and with it every run under it. */
  loseLease(leaseId: string): void {
    this.#waiting = this.#waiting.filter((held) => {
      if (held.leaseId !== leaseId) return true;
      this.#options.held.settled(held.job);
      return false;
    });
    this.abort("lease_lost", (held) => held.leaseId === leaseId);
  }

  abort(cause: Exclude<AbortCause, "max_runtime">, which: (held: HeldJob) => boolean): void {
    for (const { job } of this.#options.held.abort(cause, which)) {
      this.#options.events.emit("job.aborted", { ...runningJob(job), reason: cause });
    }
  }

  #run(held: HeldJob): void {
    const { events, executor, clock } = this.#options;
    this.#running++;
    held.started = true;
    held.startedAt = clock.monotonic();
    if (events.wants("job.started")) {
      const { readyAt, startedAt } = held.job;
      const waitedMs = readyAt === null ? null : Math.max(0, +startedAt - +readyAt);
      events.emit("job.started", { ...runningJob(held.job), waitedMs });
    }
    const outcome = executor.execute(held.job, held);
    if (outcome instanceof Promise) void outcome.then((later) => this.#ended(held, later));
    else this.#ended(held, outcome);
  }

  #ended(held: HeldJob, outcome: Outcome): void {
    if (held.cause === "max_runtime")
      this.#options.events.emit("job.aborted", { ...runningJob(held.job), reason: "max_runtime" });
    this.#end(held, outcome);
  }

  #end(held: HeldJob, outcome: Outcome): void {
    if (!held.started) return;
    held.started = false;
    this.#running--;
    const durationMs = this.#options.clock.monotonic() - held.startedAt;
    this.#times.note(held.job.type, durationMs);
    this.#options.settler.add({ job: held.job, outcome, durationMs });
    this.startWaiting();
    this.#options.onEnded();
  }
}

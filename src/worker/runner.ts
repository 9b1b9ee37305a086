// The runs of one worker: delivered jobs wait here, start as slots come free, and end in the settler.

import type { Outcome } from "../domain/outcome.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import type { AbortCause } from "./abort-handle.ts";
import type { Executor } from "./executor.ts";
import { type HeldJob, type HeldJobs, runningJob } from "./held-jobs.ts";
import { Line } from "./line.ts";
import { RunTimes } from "./room.ts";
import type { Settler } from "./settler.ts";
import { isSuspect, type Member, type Suspicion } from "./suspicion.ts";

export interface RunnerOptions {
  readonly executor: Executor;
  readonly held: HeldJobs;
  readonly settler: Settler;
  readonly concurrency: number;
  /** False while it is not known whether the jobs are still ours. */
  readonly mayStart: () => boolean;
  readonly onEnded: () => void;
  readonly suspicion: Suspicion;
  /** What a death would mean, as the lease tells it. */
  readonly mark: Member["mark"];
  readonly clock: Clock;
  readonly events: Events;
}

/** Whoever waits behind runs of which none ends for so long is better off elsewhere. */
const stuckMs = 100;

export class Runner {
  readonly #options: RunnerOptions;
  #waiting: HeldJob[] = [];
  #running = 0;
  #starting = false;
  readonly #member: Member;
  /** Runs that did not end at once, the oldest first. */
  readonly #underWay = new Line<HeldJob>();
  #endedAt = Number.NEGATIVE_INFINITY;
  #stuckTimer: NodeJS.Timeout | null = null;
  readonly #times = new RunTimes();

  constructor(options: RunnerOptions) {
    this.#options = options;
    this.#member = {
      running: () => this.#running,
      runsForMs: () => this.#oldestMs,
      holdsSuspect: () => options.held.holdsSuspect,
      mark: options.mark,
      changed: () => {
        this.startWaiting();
        options.onEnded();
      },
    };
    options.suspicion.join(this.#member);
  }

  /** Jobs that run or wait for a slot. */
  get taken(): number {
    return this.#running + this.#waiting.length;
  }

  /** On average, of the slowest type; what has not ended yet counts with its age. */
  get runMs(): number {
    return Math.max(this.#times.slowestMs, this.#oldestMs);
  }

  get #oldestMs(): number {
    const oldest = this.#underWay.first;
    return oldest === undefined ? 0 : this.#options.clock.monotonic() - oldest.startedAt;
  }

  get isReserved(): boolean {
    return this.#options.suspicion.isReserved;
  }

  get isFull(): boolean {
    return this.taken >= this.#options.concurrency;
  }

  /** They take their places, a suspect the first; `startWaiting` starts them. */
  accept(jobs: readonly HeldJob[]): void {
    this.#waiting.push(...jobs);
    if (!jobs.some(isSuspect)) return;
    this.#waiting.sort((a, b) => Number(isSuspect(b)) - Number(isSuspect(a)));
    // Two workers of this process asked for one at the same time.
    if (this.#options.suspicion.isHeldBesides(this.#member)) this.#releaseWaiting(isSuspect);
  }

  /** Nothing runs here any more. */
  leave(): void {
    this.#options.suspicion.leave(this.#member);
  }

  /** After a stall nothing starts until a renewal has said whose the jobs are. */
  startWaiting(): void {
    // A run that ends at once asks for the next one from within this loop.
    if (this.#starting) return;
    this.#starting = true;
    const { concurrency, mayStart } = this.#options;
    let next = 0;
    while (this.#running < concurrency && next < this.#waiting.length && mayStart()) {
      const held = this.#waiting[next];
      if (held === undefined || !this.#begins(held)) break;
      next++;
      this.#run(held);
    }
    this.#waiting.splice(0, next);
    this.#starting = false;
    if (this.#options.suspicion.isLong) this.#releaseWaiting((held) => !isSuspect(held));
    if (this.#waiting.length > 0 && this.#running >= concurrency) this.#watch();
  }

  #begins(held: HeldJob): boolean {
    if (isSuspect(held)) return this.#options.suspicion.begins(held, this.#member);
    return !this.isReserved;
  }

  #releaseWaiting(which: (held: HeldJob) => boolean): void {
    const released = this.#waiting.filter(which);
    if (released.length === 0) return;
    this.#waiting = this.#waiting.filter((held) => !which(held));
    this.release(released);
  }

  /** What was fetched or handed over as if runs were quick goes back when they are not. */
  #watch(): void {
    if (this.#stuckTimer !== null) return;
    this.#stuckTimer = setTimeout(() => {
      this.#stuckTimer = null;
      const { concurrency, clock } = this.#options;
      if (this.#waiting.length === 0 || this.#running < concurrency) return;
      if (clock.monotonic() - this.#endedAt >= stuckMs) this.release();
      else this.#watch();
    }, stuckMs);
    this.#stuckTimer.unref();
  }

  release(jobs: readonly HeldJob[] = this.#waiting.splice(0)): void {
    for (const held of jobs) {
      this.#options.settler.add({ held, outcome: { kind: "released" }, durationMs: 0 });
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
      this.#options.held.settled(held);
      return false;
    });
    this.abort("lease_lost", (held) => held.leaseId === leaseId);
  }

  /** Its job, which was delivered while it was being committed, is stored: it may end. */
  stored(held: HeldJob): void {
    this.#options.settler.stored(held);
    this.#options.onEnded();
  }

  /** Its job was not stored. Its end, if it has begun, is refused like any that comes too late. */
  loseJob(held: HeldJob): void {
    const at = this.#waiting.indexOf(held);
    if (at !== -1) {
      this.#waiting.splice(at, 1);
      this.#options.held.settled(held);
    } else this.abort("not_stored", (other) => other === held);
    this.stored(held);
  }

  /** Runs hear of it; what has not begun does not begin. */
  cancel(ids: readonly string[]): void {
    const isMeant = ({ job }: HeldJob) => ids.includes(job.id);
    const waiting = this.#waiting.filter(isMeant);
    this.#waiting = this.#waiting.filter((held) => !isMeant(held));
    for (const held of waiting)
      this.#options.settler.add({ held, outcome: { kind: "cancelled" }, durationMs: 0 });
    this.abort("cancelled", (held) => isMeant(held) && !waiting.includes(held));
    if (waiting.length > 0) this.#options.onEnded();
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
    if (outcome instanceof Promise) {
      held.run = this.#underWay.add(held);
      void outcome.then((later) => this.#ended(held, later));
    } else this.#ended(held, outcome);
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
    if (held.run !== null) this.#underWay.remove(held.run);
    held.run = null;
    this.#endedAt = this.#options.clock.monotonic();
    const durationMs = this.#endedAt - held.startedAt;
    this.#times.note(held.job.type, durationMs);
    const isPending = this.#options.settler.add({ held, outcome, durationMs });
    this.startWaiting();
    this.#options.suspicion.ended(this.#member);
    if (isPending) this.#options.onEnded();
  }
}

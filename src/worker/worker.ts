// A worker: claims by free slots, runs handlers, settles in batches. One connection takes the turns.

import { randomUUID } from "node:crypto";
import type { ClaimedJob } from "../domain/job.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import type { Service } from "../runtime/service.ts";
import type { ImmediateClaim, Notice, Store } from "../store/store.ts";
import type { Executor } from "./executor.ts";
import { Fetcher } from "./fetcher.ts";
import { type HeldJob, HeldJobs } from "./held-jobs.ts";
import { HintBuffer, type HintSource } from "./hint-buffer.ts";
import { LeaseKeeper } from "./lease-keeper.ts";
import type { Registry } from "./registry.ts";
import { Runner } from "./runner.ts";
import { Settler } from "./settler.ts";
import { Turns } from "./turns.ts";

export interface WorkerOptions {
  readonly name: string;
  readonly store: Store;
  readonly registry: Registry;
  readonly executor: Executor;
  readonly queueIds: readonly number[];
  readonly queueNames: readonly string[];
  readonly concurrency: number;
  /** Names ready jobs, if there is a broker. */
  readonly hints: HintSource | null;
  readonly pollMs: number;
  readonly leaseMs: number;
  readonly renewMs: number;
  readonly drainMs: number;
  readonly onStopped: () => void;
  readonly onDelayed: (delayMs: number) => void;
  readonly clock: Clock;
  readonly random: () => number;
  readonly events: Events;
}

const aheadMs = 10;
const mostAhead = 1_000;
const mostPerClaim = 1_000;
const directEveryMs = 1_000;

export class Worker implements Service {
  readonly name: string;
  readonly #options: WorkerOptions;
  readonly #fetcher: Fetcher;
  readonly #hints: HintBuffer | null;
  readonly #held = new HeldJobs();
  readonly #settler = new Settler();
  readonly #lease: LeaseKeeper;
  readonly #turns: Turns;
  readonly #runner: Runner;
  #reserved = 0;
  #state: "new" | "running" | "draining" | "stopped" = "new";
  #stopping: Promise<void> | null = null;
  #idle: (() => void)[] = [];

  constructor(options: WorkerOptions) {
    const { store, registry, clock, random, events } = options;
    this.#options = options;
    this.name = options.name;
    this.#fetcher = new Fetcher({
      directEveryMs: options.hints === null ? null : directEveryMs,
      types: registry.types,
      monotonic: () => clock.monotonic(),
      newClaimId: () => randomUUID(),
    });
    this.#hints =
      options.hints === null
        ? null
        : new HintBuffer({
            source: options.hints,
            store,
            types: registry.types,
            queueIds: () => this.#fetcher.queueIds,
            from: () => this.#fetcher.hints(),
            takesAhead: () => this.#ahead() > 0,
            clock,
            events,
          });
    this.#lease = new LeaseKeeper({
      session: store.lease(`lease ${options.name}`),
      worker: options.name,
      leaseMs: options.leaseMs,
      renewMs: options.renewMs,
      info: () => ({
        queues: options.queueNames,
        types: registry.types,
        concurrency: options.concurrency,
      }),
      heldClaims: () => this.#held.claims,
      onCancel: (ids) => this.#runner.abort("cancelled", (held) => ids.includes(held.job.id)),
      onLost: (leaseId) => this.#loseLease(leaseId),
      onRestored: () => this.#resume(),
      clock,
      random,
      events,
    });
    this.#runner = new Runner({
      ...options,
      held: this.#held,
      settler: this.#settler,
      mayStart: () => this.#lease.alive,
      onEnded: () => this.#turns.wake(),
    });
    this.#turns = new Turns({
      session: store.worker(`worker ${options.name}`),
      store,
      worker: options.name,
      process: randomUUID(),
      fetcher: this.#fetcher,
      hints: this.#hints,
      settler: this.#settler,
      held: this.#held,
      leaseId: () => this.#lease.leaseId,
      room: () => this.#room(),
      deliver: (jobs) => this.#deliver(jobs),
      start: () => this.#runner.startWaiting(),
      settled: () => this.#noteIdle(),
      delayed: options.onDelayed,
      pollMs: options.pollMs,
      clock,
      random,
      events,
    });
  }

  /** How many runs this worker has settled. */
  get settled(): number {
    return this.#turns.settledCount;
  }

  get busy(): number {
    return this.#held.size;
  }

  async start(): Promise<void> {
    if (this.#state !== "new") return;
    this.#state = "running";
    const { name, registry, queueIds, queueNames, events } = this.#options;
    await this.#lease.start();
    this.#fetcher.serve(queueIds);
    await this.#turns.start();
    events.emit("worker.started", {
      worker: name,
      queues: queueNames,
      types: registry.types ?? ["*"],
    });
  }

  hear(notice: Notice): void {
    if (notice.kind === "ready") {
      const { queueIds } = this.#fetcher;
      if (notice.queueIds.length === 0 || notice.queueIds.some((id) => queueIds.includes(id))) {
        this.#fetcher.wake(notice.late);
        this.#turns.wake();
      }
    } else if (notice.kind === "cancel" && notice.leaseId === this.#lease.leaseId) {
      this.#lease.wake();
    }
  }

  /** A broker has hints of this queue. */
  hinted(queueId: number): void {
    if (this.#hints === null || !this.#fetcher.queueIds.includes(queueId)) return;
    if (this.#hints.avoids) this.#fetcher.wake(false);
    this.#hints.wake();
    this.#turns.wake();
  }

  serve(queueIds: readonly number[]): void {
    this.#fetcher.serve(queueIds);
    this.#turns.wake();
  }

  /** Offers to take fresh jobs of these queues straight from the flush that inserts them. */
  offer(jobs: readonly { queueId: number; type: string }[]): ImmediateClaim | null {
    const room = this.#room();
    if (this.#state !== "running" || room === 0 || this.#turns.claimUnderWay) return null;
    if (!this.#fetcher.idle || this.#hints?.idle === false) return null;
    const { queueIds } = this.#fetcher;
    const { registry } = this.#options;
    const first = jobs.slice(0, room);
    const foreign = first.findIndex(
      (job) => !queueIds.includes(job.queueId) || !registry.knows(job.type),
    );
    const count = foreign === -1 ? first.length : foreign;
    if (count === 0) return null;
    const claimId = randomUUID();
    this.#held.expect(claimId);
    this.#reserved += count;
    return {
      claimId,
      leaseId: this.#lease.leaseId,
      count,
      hints: this.#fetcher.hints(),
      queueIds: [...queueIds],
    };
  }

  /** The flush is through: these jobs are ours, or (an empty list) the offer was not taken. */
  take(
    claim: ImmediateClaim,
    jobs: readonly (ClaimedJob & { weight: number })[],
    lastSeq: number | null,
  ): void {
    this.#reserved -= claim.count;
    const last = jobs.at(-1);
    if (last !== undefined && lastSeq !== null)
      this.#fetcher.note(last.queueId, last.weight, lastSeq);
    this.#deliver(this.#held.add(claim.claimId, claim.leaseId, jobs));
    this.#runner.startWaiting();
    this.#noteIdle();
    this.#turns.wake();
  }

  async stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    await this.#stopping;
  }

  async #stop(): Promise<void> {
    if (this.#state === "new") {
      this.#state = "stopped";
      return;
    }
    this.#state = "draining";
    const { drainMs, leaseMs, events, name } = this.#options;
    await this.#turns.stopClaiming();
    await this.#hints?.close();
    this.#runner.release();
    await this.#idleWithin(drainMs);
    const released = this.#runner.releaseRunning();
    // Without an answer for a whole lease: the jobs are others' to take anyway.
    await this.#idleWithin(leaseMs);
    await this.#turns.stop();
    await this.#hints?.close();
    await this.#lease.stop();
    await this.#lease
      .end()
      .catch((error) => events.emit("service.failed", { service: "lease-keeper", error }));
    await this.#turns.close();
    this.#state = "stopped";
    this.#options.onStopped();
    events.emit("worker.stopped", { worker: name, released });
  }

  #room(): number {
    if (this.#state !== "running" || !this.#lease.alive) return 0;
    const { concurrency } = this.#options;
    const ahead = this.#ahead();
    const free = concurrency + ahead - this.#runner.taken - this.#reserved;
    // Half of it, where there is a choice: while these run, the others are fetched.
    const most = ahead === 0 ? mostPerClaim : Math.min(mostPerClaim, (concurrency + ahead) >> 1);
    return Math.max(0, Math.min(most, free));
  }

  /** What quick handlers finish in a moment is fetched before it is needed; slow ones hoard nothing. */
  #ahead(): number {
    const { averageRunMs } = this.#runner;
    if (averageRunMs >= aheadMs) return 0;
    const inAMoment = (this.#options.concurrency * aheadMs) / Math.max(averageRunMs, 0.1);
    return Math.floor(Math.min(mostAhead, inAMoment));
  }

  #deliver(jobs: readonly HeldJob[]): void {
    if (this.#state === "running") this.#runner.accept(jobs);
    else this.#runner.release(jobs);
  }

  #resume(): void {
    this.#runner.startWaiting();
    this.#turns.wake();
  }

  #loseLease(lost: string): void {
    const { events, name } = this.#options;
    events.emit("lease.lost", { worker: name, lease: lost, jobs: this.#held.size });
    this.#runner.loseLease(lost);
  }

  async #idleWithin(ms: number): Promise<void> {
    if (this.#isIdle) return;
    const idle = new AbortController();
    this.#idle.push(() => idle.abort());
    await this.#options.clock.sleep(ms, idle.signal);
  }

  get #isIdle(): boolean {
    return this.#held.empty && this.#settler.pending === 0;
  }

  #noteIdle(): void {
    if (!this.#isIdle) return;
    for (const resolve of this.#idle.splice(0)) resolve();
  }
}

// A worker: claims by free slots, runs handlers, settles in batches. One connection takes the turns.

import { randomUUID } from "node:crypto";
import type { ClaimedJob } from "../domain/job.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import type { Service } from "../runtime/service.ts";
import type { ImmediateClaim, Notice, Queue, Store } from "../store/store.ts";
import type { Executor } from "./executor.ts";
import { Fetcher } from "./fetcher.ts";
import { type HeldJob, HeldJobs } from "./held-jobs.ts";
import { HintBuffer, type HintSource } from "./hint-buffer.ts";
import { LaneFetcher } from "./lane-fetcher.ts";
import { LeaseKeeper } from "./lease-keeper.ts";
import type { Registry } from "./registry.ts";
import { aheadOf, mostAheadInLanes, roomFor } from "./room.ts";
import { Runner } from "./runner.ts";
import { ServedQueues } from "./served-queues.ts";
import { Settler } from "./settler.ts";
import { Turns } from "./turns.ts";

export interface WorkerOptions {
  readonly name: string;
  readonly store: Store;
  readonly registry: Registry;
  readonly executor: Executor;
  readonly queues: readonly Queue[];
  readonly readQueues: () => Promise<readonly Queue[]>;
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

const directEveryMs = 1_000;

export class Worker implements Service {
  readonly name: string;
  readonly #options: WorkerOptions;
  readonly #fetcher: Fetcher;
  readonly #lanes: LaneFetcher;
  readonly #served: ServedQueues;
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
    const fetching = {
      types: registry.types,
      monotonic: () => clock.monotonic(),
      newClaimId: () => randomUUID(),
    };
    const everyMs = options.hints === null ? null : directEveryMs;
    this.#fetcher = new Fetcher({ ...fetching, directEveryMs: everyMs });
    this.#lanes = new LaneFetcher({ ...fetching, pollMs: options.pollMs });
    this.#served = new ServedQueues({
      read: options.readQueues,
      apply: (plain, controlled) => this.#serve(plain, controlled),
      clock,
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
            takesAhead: () => aheadOf(options.concurrency, this.#runner.runMs) > 0,
            clock,
            events,
          });
    this.#lease = new LeaseKeeper({
      session: store.lease(`lease ${options.name}`),
      worker: options.name,
      leaseMs: options.leaseMs,
      renewMs: options.renewMs,
      info: () => ({
        queues: options.queues.map((queue) => queue.name),
        ...{ types: registry.types, platforms: registry.platforms },
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
      lanes: this.#lanes,
      refresh: () => this.#served.refreshIfDue(),
      hints: this.#hints,
      settler: this.#settler,
      held: this.#held,
      leaseId: () => this.#lease.leaseId,
      room: () => this.#room(),
      laneRoom: () => this.#room(mostAheadInLanes),
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

  get settled(): number {
    return this.#turns.settledCount;
  }

  get busy(): number {
    return this.#held.size;
  }

  async start(): Promise<void> {
    if (this.#state !== "new") return;
    this.#state = "running";
    const { name, registry, queues, events } = this.#options;
    await this.#lease.start();
    this.#served.serve(queues);
    await this.#turns.start();
    events.emit("worker.started", {
      worker: name,
      queues: queues.map((queue) => queue.name),
      types: registry.types ?? ["*"],
    });
  }

  hear(notice: Notice): void {
    if (notice.kind === "queues") this.#served.refresh();
    else if (notice.kind === "ready") {
      const concerns = (ids: readonly number[]) =>
        notice.queueIds.length === 0 || notice.queueIds.some((id) => ids.includes(id));
      const plain = concerns(this.#fetcher.queueIds);
      const lanes = concerns(this.#lanes.queueIds);
      if (plain) this.#fetcher.wake(notice.late);
      if (lanes) this.#lanes.wake(notice.queueIds);
      if (plain || lanes) this.#turns.wake();
    } else if (notice.kind === "cancel" && notice.leaseId === this.#lease.leaseId) {
      this.#lease.wake();
    }
  }

  hinted(queueId: number): void {
    // Whoever put it may not know yet that the queue is controlled: a wake-up all the same.
    if (this.#lanes.queueIds.includes(queueId)) this.#lanes.wake([queueId]);
    else if (this.#hints === null || !this.#fetcher.queueIds.includes(queueId)) return;
    else if (this.#hints.avoids) this.#fetcher.wake(false);
    this.#hints?.wake();
    this.#turns.wake();
  }

  readonly refresh = () => this.#served.reread().then(() => this.#turns.claimed()); // it may be from before

  #serve(plain: readonly number[], controlled: readonly number[]): void {
    this.#fetcher.serve(plain);
    this.#lanes.serve(controlled);
    this.#turns.wake();
  }

  /** Takes fresh jobs of these queues straight from the flush that inserts them. */
  offer(jobs: readonly { queueId: number; type: string }[]): ImmediateClaim | null {
    const room = this.#room();
    if (this.#state !== "running" || room === 0 || this.#turns.claimUnderWay) return null;
    if (!this.#fetcher.idle || this.#hints?.idle === false) return null;
    const { queueIds } = this.#fetcher;
    const count = this.#options.registry.leading(jobs.slice(0, room), queueIds);
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

  #room(mostAhead?: number): number {
    if (this.#state !== "running" || !this.#lease.alive) return 0;
    const { taken, runMs } = this.#runner;
    return roomFor(this.#options.concurrency, runMs, taken + this.#reserved, mostAhead);
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

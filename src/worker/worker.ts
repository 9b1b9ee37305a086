// A worker: claims by free slots, runs handlers, settles in batches. One connection takes the turns.

import { randomUUID } from "node:crypto";
import { MillraceError } from "../domain/errors.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import type { Service } from "../runtime/service.ts";
import type { Listener, Notice, Queue, Store } from "../store/store.ts";
import { endWorker } from "./ending.ts";
import type { Executor } from "./executor.ts";
import { Fetcher } from "./fetcher.ts";
import { Handovers } from "./handovers.ts";
import { type HeldJob, HeldJobs } from "./held-jobs.ts";
import { HintBuffer, type HintSource } from "./hint-buffer.ts";
import { Idleness } from "./idleness.ts";
import { LaneFetcher } from "./lane-fetcher.ts";
import { LeaseKeeper } from "./lease-keeper.ts";
import type { Registry } from "./registry.ts";
import { aheadOf, handedTo, mostAheadInLanes, roomFor, roomUnasked } from "./room.ts";
import { Runner } from "./runner.ts";
import { ServedQueues } from "./served-queues.ts";
import { Settler } from "./settler.ts";
import type { Suspicion } from "./suspicion.ts";
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
  readonly listener: Listener;
  readonly pollMs: number;
  readonly leaseMs: number;
  readonly renewMs: number;
  readonly drainMs: number;
  /** Shared by the workers of this process. */
  readonly suspicion: Suspicion;
  readonly onStopped: (isSilent: boolean) => void;
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
  readonly #held: HeldJobs;
  readonly #settler = new Settler();
  readonly #lease: LeaseKeeper;
  readonly #turns: Turns;
  readonly #runner: Runner;
  #state: "new" | "running" | "draining" | "stopped" = "new";
  #starting: Promise<void> | null = null;
  #stopping: Promise<void> | null = null;
  readonly #idleness: Idleness;
  readonly #handovers: Handovers;

  constructor(options: WorkerOptions) {
    const { store, registry, clock, random, events } = options;
    this.#options = options;
    this.name = options.name;
    this.#held = new HeldJobs((held) => options.suspicion.gone(held));
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
    const lease = store.lease(`lease ${options.name}`);
    this.#idleness = new Idleness(() => this.#held.empty && this.#settler.pending === 0, clock);
    this.#lease = new LeaseKeeper({
      session: lease,
      worker: options.name,
      leaseMs: options.leaseMs,
      renewMs: options.renewMs,
      info: () => ({
        queues: options.queues.map((queue) => queue.name),
        ...{ types: registry.types, platforms: registry.platforms },
        concurrency: options.concurrency,
      }),
      heldClaims: () => this.#held.claims,
      onCancel: (ids) => this.#runner.cancel(ids),
      onLost: (leaseId) => this.#loseLease(leaseId),
      onRestored: () => this.#resume(),
      ...{ clock, random, events },
    });
    this.#runner = new Runner({
      ...options,
      held: this.#held,
      settler: this.#settler,
      mayStart: () => this.#lease.alive,
      onEnded: () => this.#turns.wake(),
      mark: (mark) => this.#lease.mark(mark),
    });
    this.#handovers = new Handovers({
      ...options,
      ...{ worker: options.name, session: lease, lease: this.#lease },
      // One slot starts jobs in the order of their acknowledgement: nothing may come on two ways.
      listener: options.concurrency > 1 ? options.listener : null,
      fetcher: this.#fetcher,
      held: this.#held,
      room: () => this.#room(),
      isFull: () => this.#runner.isFull,
      unasked: () => this.#room(undefined, roomUnasked),
      handed: () => handedTo(options.concurrency, this.#runner.runMs),
      runMs: () => this.#runner.runMs,
      isIdle: () => this.#isIdle,
      deliver: (jobs) => this.#accept(jobs),
      release: (jobs) => this.#runner.release(jobs),
      delivered: () => this.#delivered(),
      start: () => this.#runner.startWaiting(),
      stored: (held) => this.#runner.stored(held),
      lost: (held) => this.#runner.loseJob(held),
      hand: (claim) => this.#turns.hand(claim),
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
      suspicion: options.suspicion,
      leaseId: () => this.#lease.leaseId,
      room: () => this.#room(),
      laneRoom: () => this.#room(mostAheadInLanes),
      deliver: (jobs) => {
        this.#accept(jobs);
        this.#handovers.note();
      },
      deliverHanded: (jobs) => this.#handovers.deliver(jobs),
      start: () => this.#runner.startWaiting(),
      settled: () => this.#idleness.note(),
      idle: () => this.#handovers.consider(),
      delayed: options.onDelayed,
      pollMs: options.pollMs,
      ...{ clock, random, events },
    });
  }

  get settled(): number {
    return this.#turns.settledCount;
  }

  get busy(): number {
    return this.#held.size;
  }

  /** Whoever is stopped meanwhile claims nothing, and start() throws STOPPED. */
  async start(): Promise<void> {
    if (this.#state === "new") {
      this.#state = "running";
      this.#starting = this.#start();
    }
    await this.#starting;
  }

  async #start(): Promise<void> {
    const { name, registry, queues, events } = this.#options;
    await this.#lease.start();
    if (this.#state !== "running") throw new MillraceError("STOPPED");
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
    } else if (notice.kind === "handed") this.#handovers.heard(notice.claim);
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
    this.#handovers.withdraw();
    this.#fetcher.serve(plain);
    this.#lanes.serve(controlled);
    this.#turns.wake();
  }

  /** For producers in this process. */
  get local(): Pick<Handovers, "offer" | "take" | "mayBegin" | "begin"> {
    return this.#handovers;
  }

  async stop(): Promise<void> {
    this.#stopping ??= this.#stop().finally(() => this.#runner.leave());
    await this.#stopping;
  }

  async #stop(): Promise<void> {
    if (this.#state === "new") {
      this.#state = "stopped";
      return;
    }
    this.#state = "draining";
    const { released, isSilent } = await endWorker({
      ...this.#options,
      starting: this.#starting,
      ...{ handovers: this.#handovers, turns: this.#turns, hints: this.#hints },
      ...{ runner: this.#runner, idleness: this.#idleness, lease: this.#lease },
    });
    this.#state = "stopped";
    this.#options.onStopped(isSilent);
    this.#options.events.emit("worker.stopped", { worker: this.name, released });
  }

  #room(mostAhead?: number, roomOf = roomFor): number {
    if (this.#state !== "running" || !this.#lease.alive || this.#runner.isReserved) return 0;
    const { taken, runMs } = this.#runner;
    return roomOf(this.#options.concurrency, runMs, taken + this.#handovers.reserved, mostAhead);
  }

  #accept(jobs: readonly HeldJob[]): void {
    if (this.#state === "running") this.#runner.accept(jobs);
    else this.#runner.release(jobs);
  }

  /** Nothing was left when it looked last, and it is not looking now. */
  get #isIdle(): boolean {
    return this.#fetcher.idle && this.#hints?.idle !== false && !this.#turns.claimUnderWay;
  }

  /** Outside a turn. */
  #delivered(): void {
    this.#runner.startWaiting();
    this.#idleness.note();
    this.#turns.wake();
  }

  #resume(): void {
    this.#runner.startWaiting();
    this.#turns.wake();
  }

  #loseLease(lease: string): void {
    const jobs = this.#held.size;
    this.#options.events.emit("lease.lost", { worker: this.name, lease, jobs });
    this.#runner.loseLease(lease);
  }
}

// Keeps the worker's lease alive on a connection of its own, and hears of cancels with each renewal.

import { randomUUID } from "node:crypto";
import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import { Loop } from "../runtime/loop.ts";
import type { Service } from "../runtime/service.ts";
import type { LeaseMark, LeaseSession } from "../store/store.ts";

export interface LeaseKeeperOptions {
  readonly session: LeaseSession;
  readonly worker: string;
  readonly leaseMs: number;
  readonly renewMs: number;
  readonly info: () => unknown;
  readonly heldClaims: () => readonly string[];
  readonly onCancel: (jobIds: readonly string[]) => void;
  /** The lease is over: everything held under it belongs to others by now. */
  readonly onLost: (leaseId: string) => void;
  /** There is a lease to claim under again. */
  readonly onRestored: () => void;
  readonly clock: Clock;
  readonly random: () => number;
  readonly events: Events;
}

export class LeaseKeeper implements Service {
  readonly name = "lease-keeper";
  readonly #options: LeaseKeeperOptions;
  readonly #loop: Loop;
  #leaseId = "";
  #renewedAt = Number.NEGATIVE_INFINITY;
  #renewing: Promise<void> | null = null;
  #releasedBefore = 0;
  /** What is to be stored with the next renewal, and who waits for that. */
  #marks: { readonly mark: LeaseMark; readonly told: () => void }[] = [];
  #isEnded = false;

  constructor(options: LeaseKeeperOptions) {
    this.#options = options;
    this.#loop = new Loop({
      name: this.name,
      intervalMs: options.renewMs,
      // A failed renewal is tried again soon: the lease does not wait for the next interval.
      retryMs: Math.min(200, options.renewMs / 4),
      run: async () => {
        await this.renew();
        return { processed: 1 };
      },
      clock: options.clock,
      random: options.random,
      events: options.events,
    });
  }

  get leaseId(): string {
    return this.#leaseId;
  }

  /** False after a stall: a claim under a lease that others may have ended would lapse at once. */
  get alive(): boolean {
    const { clock, leaseMs } = this.#options;
    return this.#leaseId !== "" && clock.monotonic() - this.#renewedAt < leaseMs;
  }

  async start(): Promise<void> {
    if (this.#leaseId === "") await this.#open();
    await this.#loop.start();
  }

  async stop(): Promise<void> {
    this.#isEnded = true;
    this.#tell();
    await this.#loop.stop();
  }

  /**
   * A claim that was made before this (seconds, by the database's clock) and heard of only now may have been
   * given back by a renewal that did not list it.
   */
  get releasedBefore(): number {
    return this.#releasedBefore;
  }

  /** The renewal that is under way, if there is one: it lists what was held when it began. */
  get renewing(): Promise<void> | null {
    return this.#renewing;
  }

  /**
   * Gives the lease back; nothing may be held under it any more. `handed`: somebody may have claimed for it
   * what was never heard of here, and the second of two renewals gives that back unspent.
   */
  async end(handed: boolean): Promise<void> {
    const { session, leaseMs } = this.#options;
    const leaseId = this.#leaseId;
    try {
      for (let renewals = 0; handed && leaseId !== "" && renewals < 2; renewals++)
        await session.renew(leaseId, leaseMs, []);
      if (leaseId !== "") await session.end(leaseId);
    } finally {
      await session.close();
    }
  }

  /** Without giving the lease back: what is under way fails. */
  async close(): Promise<void> {
    await this.#options.session.close();
  }

  /** Resolves when a renewal has stored it, or when it does not matter: without a lease nothing is held. */
  mark(mark: LeaseMark): Promise<void> {
    if (this.#leaseId === "" || this.#isEnded) return Promise.resolve();
    return new Promise((told) => {
      this.#marks.push({ mark, told });
      this.wake();
    });
  }

  #tell(marks = this.#marks): void {
    this.#marks = this.#marks.slice(marks.length);
    for (const { told } of marks) told();
  }

  wake(): void {
    this.#loop.wake();
  }

  async renew(): Promise<void> {
    this.#renewing ??= this.#renewOnce().finally(() => {
      this.#renewing = null;
    });
    await this.#renewing;
  }

  async #renewOnce(): Promise<void> {
    const { session, leaseMs, heldClaims, onCancel, onRestored, worker, events, clock } =
      this.#options;
    const leaseId = this.#leaseId;
    if (leaseId === "") return this.#reopen();
    const sentAt = clock.monotonic();
    // While its answer is not known, neither is what it gave back.
    this.#releasedBefore = Number.POSITIVE_INFINITY;
    const marks = [...this.#marks];
    const mark = Object.assign({}, ...marks.map((one) => one.mark));
    const renewal = await session.renew(leaseId, leaseMs, heldClaims(), mark);
    this.#tell(marks);
    if (!renewal.renewed) {
      this.#leaseId = "";
      this.#options.onLost(leaseId);
      return this.#reopen();
    }
    const stalled = !this.alive;
    this.#renewedAt = sentAt;
    this.#releasedBefore = renewal.releasedBefore;
    if (stalled) onRestored();
    if (renewal.released > 0) events.emit("claim.released", { worker, claims: renewal.released });
    if (renewal.cancels.length > 0) onCancel(renewal.cancels);
  }

  async #reopen(): Promise<void> {
    await this.#open();
    this.#options.onRestored();
  }

  async #open(): Promise<void> {
    const { session, worker, leaseMs, info, events, clock } = this.#options;
    const leaseId = randomUUID();
    const sentAt = clock.monotonic();
    await session.open({ leaseId, worker, leaseMs, info: info() });
    this.#leaseId = leaseId;
    this.#renewedAt = sentAt;
    this.#releasedBefore = 0;
    events.emit("lease.opened", { worker, lease: leaseId });
  }
}

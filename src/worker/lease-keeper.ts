// Keeps the worker's lease alive on a connection of its own, and hears of cancels with each renewal.

import { randomUUID } from "node:crypto";
import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import { Loop } from "../runtime/loop.ts";
import type { Service } from "../runtime/service.ts";
import type { LeaseSession } from "../store/store.ts";

export interface LeaseKeeperOptions {
  readonly session: LeaseSession;
  readonly worker: string;
  readonly leaseMs: number;
  readonly renewMs: number;
  readonly info: () => unknown;
  readonly heldClaims: () => readonly string[];
  readonly onCancel: (jobIds: readonly string[]) => void;
  /** The lease is over: everything held under it belongs to others by now. */
  readonly onLost: () => void;
  readonly clock: Clock;
  readonly random: () => number;
  readonly events: Events;
}

export class LeaseKeeper implements Service {
  readonly name = "lease-keeper";
  readonly #options: LeaseKeeperOptions;
  readonly #loop: Loop;
  #leaseId = "";
  #renewing: Promise<void> | null = null;

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

  async start(): Promise<void> {
    if (this.#leaseId === "") await this.#open();
    await this.#loop.start();
  }

  async stop(): Promise<void> {
    await this.#loop.stop();
  }

  /** Gives the lease back; nothing may be held under it any more. */
  async end(): Promise<void> {
    await this.#options.session.end(this.#leaseId);
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
    const { session, leaseMs, heldClaims, onCancel, worker, events } = this.#options;
    const leaseId = this.#leaseId;
    const renewal = await session.renew(leaseId, leaseMs, heldClaims());
    if (!renewal.renewed) {
      this.#options.onLost();
      await this.#open();
      return;
    }
    if (renewal.released > 0) events.emit("claim.released", { worker, claims: renewal.released });
    if (renewal.cancels.length > 0) onCancel(renewal.cancels);
  }

  async #open(): Promise<void> {
    const { session, worker, leaseMs, info, events } = this.#options;
    const leaseId = randomUUID();
    await session.open({ leaseId, worker, leaseMs, info: info() });
    this.#leaseId = leaseId;
    events.emit("lease.opened", { worker, lease: leaseId });
  }
}

// A job as robots see it, and what they may do with it.

import type { JobState } from "../domain/job-state.ts";
import type { Outcome } from "../domain/outcome.ts";
import type { Token } from "../domain/token.ts";

export type ExceptionType = "application" | "business";

export interface Item {
  readonly id: string;
  readonly queueId: number;
  readonly tenant: string;
  readonly reference: string | null;
  readonly state: JobState;
  readonly weight: number;
  readonly payload: unknown;
  readonly result: unknown;
  readonly errorMessage: string | null;
  readonly exceptionType: ExceptionType | null;
  readonly attempt: number;
  readonly robot: string | null;
  readonly lockedAt: Date | null;
  readonly lockExpiresAt: Date | null;
  /** The job that holds it or has ended it, when a trigger made one of it. */
  readonly jobId: string | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

export interface LeasedItem extends Item {
  /** Since when it could be taken. */
  readonly readyAt: Date;
  readonly token: Token;
}

/** One item that somebody wants, under a lease of its own. */
export interface ItemWish {
  readonly queueId: number;
  readonly tenant: string;
  readonly claimId: string;
  readonly robot: string;
  /** Whose key it was: nobody else's settles it. */
  readonly holder: string;
  readonly leaseMs: number;
  /** The queue has limits, keys or ageing, and they are to be kept. */
  readonly limited: boolean;
}

export interface ItemHold {
  readonly id: string;
  readonly token: Token;
  readonly holder: string;
}

export interface ItemFailure {
  readonly message: string;
  /** As the robot said it; null: it did not. */
  readonly exceptionType: ExceptionType | null;
  /** Not worth trying again. */
  readonly isBusiness: boolean;
  /** JSON text, or null for none. */
  readonly result: string | null;
  readonly random: number;
}

export interface ItemEnd {
  readonly outcome: Outcome["kind"];
  readonly durationMs: number;
}

export interface ItemStats {
  readonly new: number;
  readonly inProgress: number;
  readonly done: number;
  readonly failed: number;
  readonly business: number;
  /** Of the last thousand that ended; null: none has. */
  readonly times: {
    readonly average: number;
    readonly p50: number;
    readonly p95: number;
    readonly p99: number;
  } | null;
  readonly oldestNewSeconds: number | null;
  readonly oldestInProgressSeconds: number | null;
  /** False: there are more rows than were looked at. */
  readonly isComplete: boolean;
}

export interface ItemStore {
  /** In the queue's order; fewer than wished for when there are no more. */
  take(wishes: readonly ItemWish[]): Promise<LeasedItem[]>;
  /**
   * Until when, and never sooner than before; null: the lease is not this one's any more. Without a length
   * it is the one that it was taken for.
   */
  renew(
    hold: ItemHold,
    leaseMs: number | null,
  ): Promise<{ until: Date; cancelled: boolean } | null>;
  complete(hold: ItemHold, result: string | null, process: string): Promise<boolean>;
  /** How the run ended; null: the lease is not this one's any more. */
  fail(hold: ItemHold, failure: ItemFailure, process: string): Promise<ItemEnd | null>;
  /** Given back unspent, as far as they are still held. */
  release(holds: readonly ItemHold[], process: string): Promise<number>;
  find(id: string): Promise<Item | null>;
  stats(queueId: number): Promise<ItemStats>;
}

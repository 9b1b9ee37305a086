// A worker process's lease, as whoever keeps it sees it.

import type { Offer } from "./offer.ts";

export interface Renewal {
  readonly renewed: boolean;
  /** Jobs of this lease somebody wants cancelled. */
  readonly cancels: readonly string[];
  /** Claims that the holder did not list and that were given back. */
  readonly released: number;
  /** They were made before this (seconds, by the database's clock). */
  readonly releasedBefore: number;
}

/** What a death of the process would mean from now on; what is left out stays as it was. */
export interface LeaseMark {
  /** The suspect of this claim runs, and nothing in this process has begun beside it. */
  readonly alone?: string;
  /** The suspect of this claim runs, and who of all in this process kills it cannot be known. */
  readonly shared?: string;
  /** A suspect of another worker in this process runs alone: what this lease holds is not to blame. */
  readonly spared?: boolean;
  /** Somebody of this claim has to wait before it begins: its time does not run yet. */
  readonly untimed?: string;
}

/** Reserved for the lease: never waits behind work. */
export interface LeaseSession {
  open(lease: { leaseId: string; worker: string; leaseMs: number; info: unknown }): Promise<void>;
  renew(
    leaseId: string,
    leaseMs: number,
    claims: readonly string[],
    mark?: LeaseMark,
  ): Promise<Renewal>;
  /** Says what it would take; whether it does is for its listener to show. */
  offer(offer: Offer): Promise<void>;
  end(leaseId: string): Promise<void>;
  close(): Promise<void>;
}

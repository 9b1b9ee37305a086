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

/** Reserved for the lease: never waits behind work. */
export interface LeaseSession {
  open(lease: { leaseId: string; worker: string; leaseMs: number; info: unknown }): Promise<void>;
  /** `shared`: from now on others run beside the suspect of this claim. */
  renew(
    leaseId: string,
    leaseMs: number,
    claims: readonly string[],
    shared?: string,
  ): Promise<Renewal>;
  /** Says what it would take; whether it does is for its listener to show. */
  offer(offer: Offer): Promise<void>;
  end(leaseId: string): Promise<void>;
  close(): Promise<void>;
}

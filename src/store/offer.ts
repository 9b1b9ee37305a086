// A worker's standing offer to take lone jobs from whoever stores them, and what comes of it. See
// docs/design/handover.md.

import type { ClaimHint } from "./claimed.ts";

export interface Offer {
  readonly leaseId: string;
  /** Another one for other queues: whoever remembers the old one hands nothing over by it. */
  readonly offerId: string;
  readonly queueIds: readonly number[];
  /** null: every type. */
  readonly types: readonly string[] | null;
  readonly hints: readonly ClaimHint[];
  /** Where it hears of what it got: nobody else knows it but who may read its offer. */
  readonly channel: string;
  /** A worker that has less of its lease left than this has not renewed in time. */
  readonly leaseLeftMs: number;
}

/** Claims a lone job for somebody else's worker while inserting it, if the offer still stands. */
export interface Handover extends Pick<Offer, "leaseId" | "offerId" | "channel" | "leaseLeftMs"> {
  readonly claimId: string;
  readonly afterSeq: number;
  /** The job itself, which goes along; null: it is to be read. */
  readonly jobText: string | null;
}

/** A claim that somebody has made for this lease. */
export interface HandedClaim {
  readonly claimId: string;
  readonly leaseId: string;
  readonly jobId: string;
  /** The job itself, when it was claimed (seconds, by the database's clock), and its place in the order. */
  readonly fresh?: { readonly text: string; readonly at: number; readonly seq: number };
}

/** Hears notices, and shows for which leases they are heard: that ends with its connection. */
export interface Listener {
  stands(leaseId: string): boolean;
  /** From now on it hears what is told on that channel, also after it left. */
  stand(leaseId: string, channel: string): Promise<void>;
  leave(leaseId: string): Promise<void>;
  close(): Promise<void>;
}

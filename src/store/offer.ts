// A worker's standing offer to take jobs straight from whoever stores them, and what comes of it. See
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
  /** How many jobs it would take in one go, ... */
  readonly atOnce: number;
  /** ... and how many its claims may hold then. */
  readonly most: number;
}

/** Claims a flush for somebody else's worker while inserting it, if the offer still stands. */
export interface Handover
  extends Pick<Offer, "leaseId" | "offerId" | "channel" | "leaseLeftMs" | "most"> {
  readonly claimId: string;
  readonly afterSeq: number;
  /** The jobs themselves, which go along, each text with a notice of its own; none: they are to be read. */
  readonly texts: readonly string[];
}

/** A claim that somebody has made for this lease. */
export interface HandedClaim {
  readonly claimId: string;
  readonly leaseId: string;
  /** null: several. */
  readonly jobId: string | null;
  /** The jobs themselves, when they were claimed (seconds, by the database's clock), and the first one's place. */
  readonly fresh?: FreshJobs;
}

export interface FreshJobs {
  readonly texts: readonly string[];
  /** Where they lie, if that is known. */
  readonly tids: string | null;
  readonly at: number;
  readonly seq: number;
}

/** Hears notices, and shows for which leases they are heard: that ends with its connection. */
export interface Listener {
  stands(leaseId: string): boolean;
  /** From now on it hears what is told on that channel, also after it left. */
  stand(leaseId: string, channel: string): Promise<void>;
  leave(leaseId: string): Promise<void>;
  close(): Promise<void>;
}

/** What a flush has shown of the worker it was for. */
export interface Seen {
  /** For how long the oldest job has been ready that comes before it; null: there is none. */
  readonly behindMs: number | null;
  /** How many jobs are with the worker, those of the flush included if it took them. */
  readonly held: number;
}

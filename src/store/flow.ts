// Flow control as the store knows it: see docs/design/flow-control.md.

import type { Rate } from "../domain/token-bucket.ts";
import type { WaitingFacts } from "../domain/waiting-reason.ts";
import type { Claimed } from "./claimed.ts";

export type { Rate } from "../domain/token-bucket.ts";

/** One controlled queue at a time. */
export interface LaneClaimRequest {
  readonly claimId: string;
  readonly leaseId: string;
  readonly queueId: number;
  readonly limit: number;
  /** Only these types; null: every type. */
  readonly types: readonly string[] | null;
  readonly suspect: boolean;
}

export interface LaneClaimed extends Claimed {
  /** Jobs that may not start now, or that others may start. */
  readonly waiting: boolean;
  /** Why the queue as a whole may start nothing more, and for how long. */
  readonly reason: string | null;
  readonly freeInMs: number | null;
  /** Which keys were looked at: not always all. `end`: the last one was passed, and then some of the first. */
  readonly visited: "all" | "some" | "end";
}

export interface TenantSettings {
  /** Its share beside others of a fair queue: so many jobs per turn. */
  readonly weight?: number;
  /** How much it may enqueue, in all queues together. */
  readonly rateLimit?: Rate | null;
  /** How many of its jobs may be there that have not ended, in all queues together. */
  readonly capacity?: number | null;
  readonly warnDepth?: number | null;
}

export interface Tenant extends Required<TenantSettings> {
  readonly name: string;
  readonly paused: boolean;
}

export interface TokenRequest {
  readonly key: string;
  readonly rate: Rate;
  /** As many as there are, at most so many. */
  readonly wanted: number;
  /** Taken whether they are there or not: the bucket goes below zero. */
  readonly owed: number;
}

export interface TokenGrant {
  readonly granted: number;
  /** What is left. */
  readonly tokens: number;
}

export interface FlowStore {
  /** The tenant's slot in a queue, given at the first call. */
  slotOf(queueId: number, tenant: string): Promise<number>;
  /** Jobs with keys are coming: workers must look for them. */
  useLanes(queueId: number): Promise<void>;
  takeTokens(requests: readonly TokenRequest[]): Promise<Map<string, TokenGrant>>;
  giveBackTokens(tokens: ReadonlyMap<string, number>): Promise<void>;
  /** Those that have settings of their own. */
  tenants(): Promise<Tenant[]>;
  configureTenant(name: string, settings: TenantSettings): Promise<Tenant>;
  /** How many jobs that count for these tenants have not ended, by tenant and queue. */
  tenantDepths(
    tenants: readonly string[],
  ): Promise<{ tenant: string; queueId: number; jobs: number }[]>;
  pauseTenant(name: string, paused: boolean): Promise<Tenant>;
  /** How many jobs run, of a queue or of a tenant. */
  running(of: { readonly queueId?: number; readonly tenant?: string }): Promise<number>;
  /** Everything that decides about one job, read at one moment; null: there is no such job. */
  factsOf(id: string): Promise<WaitingFacts | null>;
}

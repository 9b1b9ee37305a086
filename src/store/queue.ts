// A queue as the store knows it.

import type { Rate } from "./flow.ts";

export interface QueueSettings {
  readonly description?: string | null;
  readonly isActive?: boolean;
  readonly maxAttempts?: number | null;
  readonly enforceUniqueReference?: boolean;
  readonly capacity?: number | null;
  readonly warnDepth?: number | null;
  readonly retentionDays?: number;
  /** How long dead letters are kept; null: until somebody deals with them. */
  readonly deadRetentionDays?: number | null;
  /** How long the runs of ended jobs are kept; null: as long as the jobs. */
  readonly timelineRetentionDays?: number | null;
  readonly keyTtlSeconds?: number;
  /** Tenants take turns as soon as there is a second one. */
  readonly fair?: boolean;
  /** What one unit of priority weight is worth in waiting time; null: priorities are strict. */
  readonly ageingStepMs?: number | null;
  /** How many jobs of the queue run at once, in all processes together. */
  readonly concurrency?: number | null;
  /** The same for each limit key. */
  readonly keyConcurrency?: number | null;
  /** How many jobs start in any window. */
  readonly throttle?: Rate | null;
  /** The same for each ordering or limit key. */
  readonly keyThrottle?: Rate | null;
  /** Does a dead letter block its ordering key until somebody deals with it? */
  readonly deadLetterBlocksKey?: boolean;
  /** How much may be enqueued. */
  readonly rateLimit?: Rate | null;
  /** The same for each tenant. */
  readonly tenantRateLimit?: Rate | null;
  /** How many jobs of one tenant may be there that have not ended. */
  readonly tenantCapacity?: number | null;
}

export interface Queue extends Required<QueueSettings> {
  readonly id: number;
  readonly tenant: string;
  readonly name: string;
  readonly paused: boolean;
  /** Claimed with limits, turns or keys in mind: see docs/design/flow-control.md. */
  readonly controlled: boolean;
  /** Whose jobs need no slot of their own; null: nobody's yet. */
  readonly firstTenant: string | null;
  /** Jobs with keys have been seen. */
  readonly laned: boolean;
}

export interface QueueCounts {
  readonly enqueued: number;
  readonly completed: number;
  readonly dead: number;
  readonly removed: number;
  readonly retried: number;
  /** Jobs that have not ended: scheduled, ready or running. */
  readonly depth: number;
}

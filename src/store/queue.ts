// A queue as the store knows it.

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
}

export interface Queue extends Required<QueueSettings> {
  readonly id: number;
  readonly tenant: string;
  readonly name: string;
  readonly paused: boolean;
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

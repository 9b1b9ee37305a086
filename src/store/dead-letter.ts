// Dead letters as operators look through them.

export const deadLetterStatuses = ["pending_review", "reprocessed", "discarded"] as const;
export type DeadLetterStatus = (typeof deadLetterStatuses)[number];

export interface DeadLetterQuery {
  readonly tenant?: string | undefined;
  readonly status?: DeadLetterStatus | undefined;
  readonly queueId?: number | undefined;
  readonly type?: string | undefined;
  readonly category?: string | undefined;
  readonly fingerprint?: string | undefined;
  readonly errorClass?: string | undefined;
  readonly from?: Date | undefined;
  readonly to?: Date | undefined;
}

export interface DeadLetter {
  readonly id: string;
  readonly tenant: string;
  readonly queueId: number;
  readonly queue: string;
  readonly category: string | null;
  readonly type: string;
  readonly status: DeadLetterStatus;
  readonly idempotencyKey: string;
  readonly correlationId: string;
  readonly errorClass: string;
  readonly errorFingerprint: string;
  readonly errorMessage: string;
  readonly attempt: number;
  readonly reprocessedAs: string | null;
  readonly closedReason: string | null;
  readonly createdAt: Date;
  readonly diedAt: Date;
}

/** Where a page ends. */
export interface DeadLetterPlace {
  readonly diedAt: string;
  readonly id: string;
}

export interface DeadLetterPage {
  readonly letters: readonly DeadLetter[];
  readonly next: DeadLetterPlace | null;
}

export interface DeadLetterStatistics {
  readonly byStatus: Readonly<Record<string, number>>;
  readonly byErrorClass: Readonly<Record<string, number>>;
  readonly byCategory: Readonly<Record<string, number>>;
  readonly byQueue: Readonly<Record<string, number>>;
  readonly fingerprints: readonly {
    readonly fingerprint: string;
    readonly count: number;
    readonly message: string;
    readonly lastAt: Date;
  }[];
  readonly oldestPendingSeconds: number | null;
  readonly lastDay: number;
}

export interface DeadLetterStore {
  /** The newest first. */
  list(
    query: DeadLetterQuery,
    before: DeadLetterPlace | null,
    limit: number,
  ): Promise<DeadLetterPage>;
  count(query: DeadLetterQuery): Promise<number>;
  statistics(tenant: string | undefined): Promise<DeadLetterStatistics>;
}

import type { JobError } from "./error-class.ts";
import type { JobState } from "./job-state.ts";
import type { Timeline } from "./timeline.ts";
import type { Token } from "./token.ts";

/** What is rare about a job, kept in one column so that the hot row stays small. */
export interface JobMeta {
  readonly priority?: string;
  readonly category?: string;
  readonly payloadVersion?: string;
  readonly reprocessOf?: string;
  readonly source?: string;
  /** The trigger that made it, and the slot it was made for (ISO 8601). */
  readonly trigger?: string;
  readonly slot?: string;
  readonly cancelReason?: string;
  readonly orderingKey?: string;
  readonly limitKey?: string;
  /** W3C trace context of the enqueue, if it belonged to a trace. */
  readonly traceparent?: string;
  readonly tracestate?: string;
  /** It counts for its tenant: whoever ends it counts it out. */
  readonly counted?: true;
}

/** A job as everybody but its holder sees it. */
export interface Job {
  readonly id: string;
  readonly type: string;
  readonly queue: string;
  readonly tenant: string;
  readonly state: JobState;
  readonly weight: number;
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly crashCount: number;
  readonly payload: unknown;
  readonly result: unknown;
  readonly error: JobError | null;
  readonly correlationId: string;
  readonly idempotencyKey: string;
  readonly reference: string | null;
  readonly meta: JobMeta;
  readonly timeline: Timeline;
  readonly cancelRequested: boolean;
  readonly createdAt: Date;
  readonly dueAt: Date | null;
  readonly startedAt: Date | null;
  readonly finishedAt: Date | null;
  readonly expiresAt: Date | null;
  readonly reprocessedAs: string | null;
  readonly closedReason: string | null;
}

/** Where the store left a job it handed out, so that it finds it again without a search. */
export interface Place {
  readonly tid: string;
  readonly seq: number;
}

/** A job in its holder's hands. */
export interface ClaimedJob {
  readonly id: string;
  readonly place?: Place | undefined;
  readonly token: Token;
  readonly type: string;
  readonly queueId: number;
  readonly tenant: string;
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly crashCount: number;
  readonly maxRuntimeMs: number | null;
  readonly payload: unknown;
  readonly correlationId: string;
  readonly idempotencyKey: string;
  readonly reference: string | null;
  readonly meta: JobMeta;
  readonly timeline: Timeline;
  readonly createdAt: Date;
  /** When it could be taken: later than createdAt if it was delayed or is tried again; null: not known. */
  readonly readyAt: Date | null;
  readonly startedAt: Date;
}

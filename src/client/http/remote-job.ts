// A job as the service tells of it.

import type { JobError } from "../../domain/error-class.ts";
import type { Job } from "../../domain/job.ts";
import type { TimelineEntry } from "../../domain/timeline.ts";

/** Tokens are their holders', and what is rare has fields of its own. */
export interface RemoteJob extends Omit<Job, "timeline" | "meta"> {
  readonly category: string | null;
  readonly reprocessOf: string | null;
  /** True: payload and result were not shown. */
  readonly payloadMasked: boolean;
  readonly timeline: readonly Omit<TimelineEntry, "token">[];
}

type Wire = Record<string, unknown>;

const date = (value: unknown) => (value === null ? null : new Date(String(value)));
const text = (value: unknown) => (value === null ? null : String(value));

export function toRemoteJob(wire: Wire): RemoteJob {
  return {
    id: String(wire.id),
    type: String(wire.type),
    queue: String(wire.queue),
    tenant: String(wire.tenant_id),
    state: wire.state as Job["state"],
    weight: Number(wire.weight),
    attempt: Number(wire.attempt),
    maxAttempts: Number(wire.max_attempts),
    crashCount: Number(wire.crash_count),
    payload: wire.payload,
    payloadMasked: wire.payload_masked === true,
    result: wire.result,
    error: errorOf(wire),
    correlationId: String(wire.correlation_id),
    idempotencyKey: String(wire.idempotency_key),
    reference: text(wire.reference),
    category: text(wire.category),
    reprocessOf: text(wire.reprocess_of),
    timeline: (wire.timeline as Wire[]).map(runOf),
    cancelRequested: wire.cancel_requested === true,
    createdAt: new Date(String(wire.created_at)),
    dueAt: date(wire.due_at),
    startedAt: date(wire.started_at),
    finishedAt: date(wire.finished_at),
    expiresAt: date(wire.expires_at),
    reprocessedAs: text(wire.reprocessed_as),
    closedReason: text(wire.closed_reason),
  };
}

function errorOf(wire: Wire): JobError | null {
  if (wire.error_class === null) return null;
  return {
    class: wire.error_class as JobError["class"],
    fingerprint: String(wire.error_fingerprint ?? ""),
    message: String(wire.error_message ?? ""),
  };
}

function runOf(wire: Wire): RemoteJob["timeline"][number] {
  const exceptionType = wire.exception_type as "application" | "business" | null;
  return {
    attempt: Number(wire.attempt),
    worker: String(wire.worker),
    startedAt: String(wire.started_at),
    endedAt: String(wire.ended_at),
    outcome: wire.outcome as TimelineEntry["outcome"],
    ...(wire.error_class === null ? {} : { errorClass: String(wire.error_class) }),
    ...(wire.error_fingerprint === null ? {} : { fingerprint: String(wire.error_fingerprint) }),
    ...(wire.message === null ? {} : { message: String(wire.message) }),
    ...(exceptionType === null ? {} : { exceptionType }),
    ...(wire.times === 1 ? {} : { times: Number(wire.times) }),
  };
}

/** A job without what may be large. */
export type FoundJob = Pick<
  RemoteJob,
  | "id"
  | "type"
  | "queue"
  | "tenant"
  | "state"
  | "attempt"
  | "reference"
  | "createdAt"
  | "finishedAt"
>;

export const toFoundJob = (wire: Wire): FoundJob => ({
  id: String(wire.id),
  type: String(wire.type),
  queue: String(wire.queue),
  tenant: String(wire.tenant_id),
  state: wire.state as Job["state"],
  attempt: Number(wire.attempt),
  reference: text(wire.reference),
  createdAt: new Date(String(wire.created_at)),
  finishedAt: date(wire.finished_at),
});

export interface RemoteExplanation {
  readonly job: string;
  readonly state: Job["state"];
  /** A code; the guide to flow control lists them. */
  readonly reason: string;
  readonly text: string;
  readonly until: Date | null;
  readonly holders: readonly { readonly job: string; readonly worker: string | null }[];
}

export function toExplanation(wire: Wire): RemoteExplanation {
  const [reason = {}] = wire.reasons as Wire[];
  const holders = (reason.holders ?? []) as { job_id: string; worker: string | null }[];
  return {
    job: String(wire.job_id),
    state: wire.state as Job["state"],
    reason: String(reason.code),
    text: String(reason.message),
    until: date(reason.until),
    holders: holders.map(({ job_id, worker }) => ({ job: job_id, worker })),
  };
}

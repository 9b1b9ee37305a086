// A claimed job as it comes back. Reading rows is a good part of a worker's time: what most jobs do not have
// shares one column, times are plain numbers, and what is as usual is left out.

import type { ClaimedJob, JobMeta, Place } from "../../domain/job.ts";
import type { Timeline } from "../../domain/timeline.ts";
import type { Token } from "../../domain/token.ts";
import { payloadTextOf } from "./long-payload.ts";

/** What a job has in common with the last one that was claimed, most of the time. */
export interface Usual {
  readonly type: string;
  readonly tenant: string;
  readonly maxAttempts: number;
  readonly queueId: number;
  readonly weight: number;
}

/** Nothing is like this. */
export const unusual: Usual = Object.freeze({
  ...{ type: "", tenant: "", maxAttempts: 0, queueId: 0, weight: 0 },
});

const names = ["type", "tenant", "max_attempts", "queue_id", "weight"] as const;
const types = ["text", "text", "smallint", "int", "smallint"];

/** How many parameters say what is usual. */
export const usualCount = names.length;

export const usualParameters = (usual: Usual): string[] => [
  usual.type,
  usual.tenant,
  String(usual.maxAttempts),
  String(usual.queueId),
  String(usual.weight),
];

/** What one who claims has learned of what to expect. */
export class Habits {
  #usual = unusual;

  get usual(): Usual {
    return this.#usual;
  }

  learn(jobs: readonly Usual[]): void {
    const last = jobs.at(-1);
    if (last === undefined) return;
    const { type, tenant, maxAttempts, queueId, weight } = last;
    this.#usual = { type, tenant, maxAttempts, queueId, weight };
  }
}

const unless = (column: string, usual: string) => `nullif(${column}, ${usual})`;

/** The columns of a claimed row but for its place; `first` is the parameter that names the usual type. */
export function claimedColumns(first: number | null): string {
  const [type, tenant, maxAttempts, queueId, weight] = names.map((name, i) =>
    first === null ? name : unless(name, `$${first + i}::${types[i]}`),
  );
  return `id, ${unless("claim_no", "1")}, ${type}, ${queueId}, ${tenant}, ${unless("attempt", "1")}, ${maxAttempts},
    ${unless("crash_count", "0")}, ${payloadTextOf()}, date_part('epoch', created_at), date_part('epoch', started_at),
    ${weight}, seq::float8,
    case when ready_at > created_at
        or num_nonnulls(max_runtime_ms, correlation_id, idempotency_key, reference, meta, timeline) > 0
      then json_build_array(max_runtime_ms, correlation_id, idempotency_key, reference, meta, timeline,
        date_part('epoch', ready_at)) end`;
}

type Rare = [
  number | null,
  string | null,
  string | null,
  string | null,
  JobMeta | null,
  Timeline | null,
  number | null,
];

const nothingRare: Rare = [null, null, null, null, null, null, null];
const noMeta: JobMeta = Object.freeze({});
const noTimeline: Timeline = Object.freeze([]);

class ClaimedRow implements ClaimedJob, Place {
  readonly id: string;
  readonly token: Token;
  readonly type: string;
  readonly queueId: number;
  readonly tenant: string;
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly crashCount: number;
  readonly weight: number;
  readonly seq: number;
  readonly tid: string;
  readonly maxRuntimeMs: number | null;
  readonly correlationId: string;
  readonly idempotencyKey: string;
  readonly reference: string | null;
  readonly meta: JobMeta;
  readonly timeline: Timeline;
  readonly #payload: string;
  readonly #createdAt: number;
  readonly #readyAt: number | null;
  readonly #startedAt: number;

  constructor(claimId: string, row: unknown[], usual: Usual) {
    this.id = row[0] as string;
    this.token = { claimId, claimNo: (row[1] as number | null) ?? 1 };
    this.type = (row[2] as string | null) ?? usual.type;
    this.queueId = (row[3] as number | null) ?? usual.queueId;
    this.tenant = (row[4] as string | null) ?? usual.tenant;
    this.attempt = (row[5] as number | null) ?? 1;
    this.maxAttempts = (row[6] as number | null) ?? usual.maxAttempts;
    this.crashCount = (row[7] as number | null) ?? 0;
    this.#payload = row[8] as string;
    this.#createdAt = row[9] as number;
    this.#startedAt = row[10] as number;
    this.weight = (row[11] as number | null) ?? usual.weight;
    this.seq = row[12] as number;
    const rare = row[13] === null ? nothingRare : (JSON.parse(row[13] as string) as Rare);
    this.maxRuntimeMs = rare[0];
    this.correlationId = rare[1] ?? this.id;
    this.idempotencyKey = rare[2] ?? this.id;
    this.reference = rare[3];
    this.meta = rare[4] ?? noMeta;
    this.timeline = rare[5] ?? noTimeline;
    // A function claims in controlled queues and does not tell; what runs for the first time was mostly
    // not delayed.
    this.#readyAt = rare[6] ?? (this.attempt > 1 ? null : this.#createdAt);
    this.tid = row[14] as string;
  }

  /** Read when a run asks for it, and anew each time: what waits to run or to be settled is but a text. */
  get payload(): unknown {
    return JSON.parse(this.#payload);
  }

  get place(): Place {
    return this;
  }

  get createdAt(): Date {
    return new Date(this.#createdAt * 1000);
  }

  get readyAt(): Date | null {
    return this.#readyAt === null ? null : new Date(this.#readyAt * 1000);
  }

  get startedAt(): Date {
    return new Date(this.#startedAt * 1000);
  }
}

export const toJobsInOrder = (claimId: string, rows: readonly unknown[][], usual: Usual) =>
  rows.map((row) => new ClaimedRow(claimId, row, usual));

const byPlace = (a: ClaimedRow, b: ClaimedRow) => a.weight - b.weight || a.seq - b.seq;

/** They come in the order in which they lie there, which is mostly the right one. */
export function toJobs(claimId: string, rows: readonly unknown[][], usual: Usual): ClaimedRow[] {
  const jobs = toJobsInOrder(claimId, rows, usual);
  for (let i = 1; i < jobs.length; i++)
    if (byPlace(jobs[i - 1] as ClaimedRow, jobs[i] as ClaimedRow) > 0) return jobs.sort(byPlace);
  return jobs;
}

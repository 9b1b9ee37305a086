// Finding jobs, as the store knows it. A page is what a bounded walk finds: it may be short, even empty,
// and there is more while it has a `next`.

import type { JobState } from "../domain/job-state.ts";
import type { Label } from "./label.ts";

export interface JobFilter {
  readonly tenant?: string | undefined;
  readonly id?: string | undefined;
  readonly key?: string | undefined;
  readonly correlationId?: string | undefined;
  /** Of the tenant that is named, or of `default`. */
  readonly label?: Label | undefined;
  readonly reference?: string | undefined;
  readonly queueIds?: readonly number[] | undefined;
  readonly type?: string | undefined;
  readonly states?: readonly JobState[] | undefined;
  readonly createdFrom?: Date | undefined;
  readonly createdTo?: Date | undefined;
}

/** A job without what may be large. */
export interface JobSummary {
  readonly id: string;
  readonly type: string;
  readonly queueId: number;
  readonly queue: string;
  readonly tenant: string;
  readonly state: JobState;
  readonly weight: number;
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly correlationId: string;
  readonly idempotencyKey: string;
  readonly reference: string | null;
  readonly createdAt: Date;
  readonly dueAt: Date | null;
  readonly startedAt: Date | null;
  readonly finishedAt: Date | null;
  readonly errorClass: string | null;
  readonly errorMessage: string | null;
}

export interface JobPage {
  readonly jobs: readonly JobSummary[];
  /** The id to go on before; null: that was all. */
  readonly next: string | null;
}

export interface JobSearch {
  /** The newest first. */
  jobs(filter: JobFilter, before: string | null, limit: number): Promise<JobPage>;
}

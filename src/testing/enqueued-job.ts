import type { Job } from "../domain/job.ts";

/** A job as it is now, and how long it was told to wait when it was enqueued. */
export interface EnqueuedJob extends Job {
  readonly delayMs: number;
}

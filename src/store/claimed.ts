import type { ClaimedJob } from "../domain/job.ts";

/** What a claim has brought. */
export interface Claimed {
  readonly jobs: readonly (ClaimedJob & { readonly weight: number; readonly seq: number })[];
}

import type { ClaimedJob } from "../domain/job.ts";

/** What a claim has brought. */
export interface Claimed {
  readonly jobs: readonly (ClaimedJob & { readonly weight: number; readonly seq: number })[];
}

/** Where a claim starts looking, so that it need not walk over what is already taken. */
export interface ClaimHint {
  readonly queueId: number;
  readonly weight: number;
  readonly afterSeq: number;
}

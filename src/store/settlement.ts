import type { Outcome } from "../domain/outcome.ts";
import type { Timeline } from "../domain/timeline.ts";
import type { Token } from "../domain/token.ts";

export interface Settlement {
  readonly id: string;
  readonly token: Token;
  readonly outcome: Exclude<Outcome, { kind: "completed" }>;
  /** undefined: as it is. */
  readonly timeline: Timeline | undefined;
  /** One more crash on the job's account. */
  readonly charged?: boolean;
  /** Does it count for its tenant? Undefined: nobody knows. */
  readonly counted?: boolean;
}

/** Ids of the jobs that took effect, with how they ended. */
export type Settled = ReadonlyMap<string, string>;

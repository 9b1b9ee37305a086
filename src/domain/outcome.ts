// How a run ended, named by intent. The worker and the reclaimer both decide here and nowhere else.

import {
  type BreakerOpenError,
  isBreakerOpen,
  probeText,
  returnDelayMs,
} from "./circuit-breaker.ts";
import { describeError, storable } from "./describe-error.ts";
import { type Classifier, classify, type Failure, isSnooze, type JobError } from "./error-class.ts";
import { defaultRetryPolicy, type RetryPolicy, waitBy } from "./retry-policy.ts";
import { freeProbes, type Timeline } from "./timeline.ts";

export type Outcome =
  | { readonly kind: "completed"; readonly result: unknown; readonly json: string | undefined }
  | { readonly kind: "retried"; readonly delayMs: number; readonly error: JobError }
  | {
      readonly kind: "snoozed";
      readonly delayMs: number;
      readonly reason: string;
      /** It was a probe of a breaker, and failed. */
      readonly probed?: true;
    }
  | { readonly kind: "released" }
  | { readonly kind: "cancelled" }
  | { readonly kind: "dead"; readonly error: JobError };

const maxReasonBytes = 200;
const maxDelayMs = 10 * 365 * 86_400_000;

export interface Run {
  readonly type: string;
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly crashCount: number;
  readonly timeline?: Timeline;
}

/** Crashes count apart from failures, so that a crash never uses up a failure's attempts. */
export const failuresSoFar = (run: Run): number => Math.max(1, run.attempt - run.crashCount);

export interface FailureRules {
  readonly policy: RetryPolicy;
  readonly random: number;
  readonly classifier?: Classifier | undefined;
  /** What was thrown failed a probe: how long the breaker puts off whoever made it. */
  readonly failedProbe?: BreakerOpenError | undefined;
  /** Hears of a classifier or policy that fails itself; the usual rules decide then. */
  readonly onFault?: (fault: unknown) => void;
}

export function outcomeOfFailure(run: Run, thrown: unknown, context: FailureRules): Outcome {
  if (isSnooze(thrown)) {
    const reason = storable(String(thrown.message), maxReasonBytes);
    return { kind: "snoozed", delayMs: storableDelay(thrown.delayMs), reason };
  }
  if (isBreakerOpen(thrown)) {
    const delayMs = storableDelay(returnDelayMs(thrown, context.random));
    return { kind: "snoozed", delayMs, reason: storable(thrown.message, maxReasonBytes) };
  }
  const failure = judge(thrown, context);
  const error = describeError(run.type, thrown, failure);
  const failures = failuresSoFar(run);
  const { failedProbe } = context;
  if (failedProbe !== undefined && isFreeProbe(run, failure))
    return {
      kind: "snoozed",
      delayMs: storableDelay(
        Math.max(wait(failure, failures, context), returnDelayMs(failedProbe, context.random)),
      ),
      reason: storable(probeText(failedProbe.breaker, error.message), maxReasonBytes),
      probed: true,
    };
  if (failure.class === "non_retryable" || failures >= run.maxAttempts)
    return { kind: "dead", error };
  const delayMs = storableDelay(wait(failure, failures, context));
  return { kind: "retried", delayMs, error };
}

/** So many probes in a row cost a job no attempt, and the next one does: it may be what fails them. */
export const mostFreeProbes = 100;

const isFreeProbe = ({ timeline = [] }: Run, failure: Failure): boolean =>
  failure.class !== "non_retryable" && freeProbes(timeline) < mostFreeProbes;

// A classifier or policy that fails itself must not keep the job from being settled.
function judge(thrown: unknown, { classifier, onFault }: FailureRules): Failure {
  try {
    return classify(thrown, classifier);
  } catch (fault) {
    onFault?.(fault);
    return classify(thrown);
  }
}

function wait(failure: Failure, failures: number, { policy, random, onFault }: FailureRules) {
  try {
    return waitBy(policy, failure, failures, random);
  } catch (fault) {
    onFault?.(fault);
    return defaultRetryPolicy(failure, failures, random);
  }
}

/** Whatever it is handed (NaN, Infinity, no number at all) must not spoil the batch it is settled with. */
function storableDelay(ms: unknown): number {
  if (typeof ms !== "number" || Number.isNaN(ms)) return 0;
  return Math.min(Math.max(0, Math.round(ms)), maxDelayMs);
}

export const maxCrashes = 3;

export type LapseCharge = "charged" | "spared";

/** How a suspect ran when its process died: nothing had begun beside it, or others had, or it had not begun itself. */
export type SuspectRun = "alone" | "shared" | "not_yet";

interface LapsedRun {
  readonly crashCount: number;
  readonly ran: SuspectRun;
  /** It is known to be the doing of somebody under another lease of its process. */
  readonly spared: boolean;
}

/** A crash charges the suspect that ran alone in its process. Otherwise all that it held, but suspects that waited. */
export function lapseCharges(held: readonly LapsedRun[]): LapseCharge[] {
  if (held.some(({ spared }) => spared)) return held.map(() => "spared");
  const isCertain = held.some(({ crashCount, ran }) => crashCount > 0 && ran === "alone");
  return held.map(({ crashCount, ran }) => {
    const isCharged = crashCount > 0 ? ran !== "not_yet" : !isCertain;
    return isCharged ? "charged" : "spared";
  });
}

/** A lapsed job may run again at once: it has waited for its lease to end already. */
export function outcomeOfLapse(run: Run, charge: LapseCharge): Outcome {
  if (charge === "spared") return { kind: "released" };
  const crashes = run.crashCount + 1;
  const lapsed = new Error(
    crashes >= maxCrashes
      ? `The process running this job died ${crashes} times.`
      : "The process running this job died or stalled past its lease.",
  );
  lapsed.name = "LeaseLapsed";
  delete lapsed.stack;
  const error = describeError(run.type, lapsed, { class: "transient" });
  return crashes >= maxCrashes ? { kind: "dead", error } : { kind: "retried", delayMs: 0, error };
}

// One circuit breaker, as a machine. The store does the same in SQL, and a test compares the two.
// Each change of state begins a new period; a report counts only in the period its call began in.

import {
  type Classifier,
  classify,
  type ErrorClass,
  isSnooze,
  isThrown,
  thrownKind,
} from "./error-class.ts";
import { MillraceError } from "./errors.ts";

export const breakerStates = ["CLOSED", "OPEN", "HALF_OPEN"] as const;
export type BreakerState = (typeof breakerStates)[number];

interface BreakerTransition {
  readonly from: readonly BreakerState[];
  readonly to: BreakerState;
}

export const breakerTransitions = {
  trip: { from: ["CLOSED"], to: "OPEN" },
  probe: { from: ["OPEN"], to: "HALF_OPEN" },
  recover: { from: ["HALF_OPEN"], to: "CLOSED" },
  relapse: { from: ["HALF_OPEN"], to: "OPEN" },
  open: { from: breakerStates, to: "OPEN" },
  close: { from: breakerStates, to: "CLOSED" },
  reset: { from: breakerStates, to: "CLOSED" },
} as const satisfies Record<string, BreakerTransition>;

export interface BreakerSettings {
  /** So many failures in a row open it. */
  readonly failureThreshold: number;
  readonly openCooldownSeconds: number;
  /** Calls let through while it is half open, by all processes together. */
  readonly halfOpenProbeCount: number;
  /** A probe that was not answered by then is granted again. */
  readonly probeTimeoutSeconds: number;
  /** Over how long jobs come back; null: as long as the cool-down. */
  readonly returnSpreadSeconds: number | null;
}

export interface CircuitBreaker {
  readonly state: BreakerState;
  readonly period: number;
  /** In a row, while closed; what tripped it, while open. */
  readonly failures: number;
  /** While open: from when on a probe may go out; null: not before somebody closes it. */
  readonly retryAtMs: number | null;
  readonly probes: readonly { readonly id: string; readonly untilMs: number }[];
}

/** A call that was let through. */
export interface Pass {
  readonly period: number;
  readonly probe: string | null;
}

export type Admission =
  | { readonly kind: "passed"; readonly breaker: CircuitBreaker; readonly pass: Pass }
  | { readonly kind: "refused"; readonly retryAfterMs: number };

/** "none": the call says nothing about the platform. */
export type Verdict = "success" | "failure" | "none";

export const newBreaker: CircuitBreaker = Object.freeze({
  state: "CLOSED",
  period: 1,
  failures: 0,
  retryAtMs: null,
  probes: [],
});

const cooldownMs = (settings: BreakerSettings) => settings.openCooldownSeconds * 1_000;
const mostProbeWaitMs = 1_000;

/** Closed: passes. Cool-down over: passes as a probe, if one is free. */
export function admit(
  breaker: CircuitBreaker,
  settings: BreakerSettings,
  now: number,
  probe: string,
): Admission {
  const { state, period, retryAtMs } = breaker;
  if (state === "CLOSED") return { kind: "passed", breaker, pass: { period, probe: null } };
  if (state === "OPEN" && (retryAtMs === null || retryAtMs > now)) {
    const retryAfterMs = retryAtMs === null ? cooldownMs(settings) : retryAtMs - now;
    return { kind: "refused", retryAfterMs };
  }
  const live = breaker.probes.filter(({ id, untilMs }) => untilMs > now && id !== probe);
  if (live.length >= settings.halfOpenProbeCount)
    return { kind: "refused", retryAfterMs: Math.min(mostProbeWaitMs, cooldownMs(settings)) };
  const untilMs = now + settings.probeTimeoutSeconds * 1_000;
  const halfOpen: CircuitBreaker = {
    ...breaker,
    state: "HALF_OPEN",
    period: state === "OPEN" ? period + 1 : period,
    retryAtMs: null,
    probes: [...live, { id: probe, untilMs }],
  };
  return { kind: "passed", breaker: halfOpen, pass: { period: halfOpen.period, probe } };
}

/** Reports of one period in the order they came, as far as they matter. */
export interface Tally {
  /** Failures before the first success. */
  readonly leading: number;
  readonly longest: number;
  /** Failures after the last success. */
  readonly trailing: number;
  readonly succeeded: boolean;
}

export const emptyTally: Tally = Object.freeze({
  leading: 0,
  longest: 0,
  trailing: 0,
  succeeded: false,
});

export const tallyOf = (verdict: Exclude<Verdict, "none">): Tally =>
  verdict === "success"
    ? { ...emptyTally, succeeded: true }
    : { leading: 1, longest: 1, trailing: 1, succeeded: false };

export function joinTallies(first: Tally, second: Tally): Tally {
  return {
    leading: first.succeeded ? first.leading : first.leading + second.leading,
    longest: Math.max(first.longest, second.longest, first.trailing + second.leading),
    trailing: second.succeeded ? second.trailing : first.trailing + second.trailing,
    succeeded: first.succeeded || second.succeeded,
  };
}

/** What calls of a closed period have to say. */
export function report(
  breaker: CircuitBreaker,
  settings: BreakerSettings,
  now: number,
  { period, tally }: { readonly period: number; readonly tally: Tally },
): CircuitBreaker {
  if (breaker.state !== "CLOSED" || breaker.period !== period) return breaker;
  const longest = Math.max(breaker.failures + tally.leading, tally.longest);
  if (longest >= settings.failureThreshold)
    return { ...opened(breaker, now + cooldownMs(settings)), failures: longest };
  return {
    ...breaker,
    failures: tally.succeeded ? tally.trailing : breaker.failures + tally.trailing,
  };
}

/** What a probe has to say; "none" gives its place back. */
export function reportProbe(
  breaker: CircuitBreaker,
  settings: BreakerSettings,
  now: number,
  { period, probe, verdict }: Pass & { readonly verdict: Verdict },
): CircuitBreaker {
  const isHeld = breaker.probes.some(({ id }) => id === probe);
  if (breaker.state !== "HALF_OPEN" || breaker.period !== period || !isHeld) return breaker;
  if (verdict === "success") return closed(breaker);
  if (verdict === "failure") return opened(breaker, now + cooldownMs(settings));
  return { ...breaker, probes: breaker.probes.filter(({ id }) => id !== probe) };
}

export const breakerActions = ["open", "close", "reset"] as const;
export type BreakerAction = (typeof breakerActions)[number];

export const changeByHand = (breaker: CircuitBreaker, action: BreakerAction): CircuitBreaker =>
  action === "open" ? { ...opened(breaker, null), failures: 0 } : closed(breaker);

const opened = (breaker: CircuitBreaker, retryAtMs: number | null): CircuitBreaker => ({
  ...breaker,
  state: "OPEN",
  period: breaker.period + 1,
  retryAtMs,
  probes: [],
});

const closed = ({ period }: CircuitBreaker): CircuitBreaker => ({
  ...newBreaker,
  period: period + 1,
});

const openText = (breaker: string) => `The breaker "${breaker}" is open.`;

export const probeText = (breaker: string, error: string) =>
  `${openText(breaker)} This run was a probe, and failed: ${error}`;

/** Which breaker put a job off, by the reason that was kept; null: it was not one. */
export const breakerNamedIn = (reason: string): string | null =>
  /^The breaker "(.*?)" is open\.(?:$| This run was a probe)/s.exec(reason)?.[1] ?? null;

/** A call that was not made. Let through by a handler, it puts the job off and spends no attempt. */
export class BreakerOpenError extends MillraceError {
  readonly breaker: string;
  readonly retryAfterMs: number;
  /** Jobs come back somewhere within so long after that. */
  readonly spreadMs: number;

  constructor(breaker: string, wait: { readonly retryAfterMs: number; readonly spreadMs: number }) {
    const retryAfterMs = Math.max(1, Math.ceil(wait.retryAfterMs));
    super("BREAKER_OPEN", openText(breaker), {
      details: { breaker, retryAfterMs },
    });
    this.breaker = breaker;
    this.retryAfterMs = retryAfterMs;
    this.spreadMs = wait.spreadMs;
  }

  get [thrownKind]() {
    return "breaker_open" as const;
  }
}

export const isBreakerOpen = (error: unknown): error is BreakerOpenError =>
  isThrown(error, "breaker_open");

export const returnDelayMs = (refusal: BreakerOpenError, random: number): number =>
  refusal.retryAfterMs + refusal.spreadMs * random;

/** What an error says about the platform it came from. */
export function verdictOf(error: unknown, classifier?: Classifier): Verdict {
  if (isSnooze(error) || isBreakerOpen(error)) return "none";
  return classOf(error, classifier) === "non_retryable" ? "success" : "failure";
}

/** Without the classifier where it fails itself, as where the job is settled. */
function classOf(error: unknown, classifier?: Classifier): ErrorClass {
  try {
    return classify(error, classifier).class;
  } catch {
    return classify(error).class;
  }
}

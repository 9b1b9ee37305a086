// The pure core: what each transition does to a job. PostgreSQL must agree with it (test/conformance).

import { allows, type JobState, type Transition } from "./job-state.ts";
import { type LapseCharge, maxCrashes } from "./outcome.ts";
import type { Token } from "./token.ts";

export interface JobCore {
  readonly state: JobState;
  readonly attempt: number;
  readonly crashCount: number;
  readonly claimNo: number;
  readonly claimId: string | null;
  readonly cancelRequested: boolean;
  readonly dueAt: number | null;
  readonly expiresAt: number | null;
  readonly reprocessed: boolean;
}

export type Command =
  | { readonly do: "promote"; readonly now: number }
  | { readonly do: "claim"; readonly now: number; readonly claimId: string }
  | { readonly do: "complete" | "fail" | "release" | "cancelAck" | "renew"; readonly token: Token }
  | { readonly do: "retry" | "snooze"; readonly token: Token; readonly dueAt: number }
  | {
      readonly do: "lapse";
      readonly token: Token;
      readonly charge: LapseCharge;
      readonly now: number;
    }
  | { readonly do: "cancel" | "reprocess" | "discard" | "delete" }
  | { readonly do: "expire"; readonly now: number };

export type Refusal = "illegal_transition" | "stale_token" | "not_due" | "expired" | "not_expired";

export type Transitioned =
  | { readonly ok: true; readonly job: JobCore }
  | { readonly ok: false; readonly refusal: Refusal };

export function newJob(options: { dueAt?: number; expiresAt?: number } = {}): JobCore {
  return {
    state: options.dueAt === undefined ? "ready" : "scheduled",
    attempt: 0,
    crashCount: 0,
    claimNo: 0,
    claimId: null,
    cancelRequested: false,
    dueAt: options.dueAt ?? null,
    expiresAt: options.expiresAt ?? null,
    reprocessed: false,
  };
}

export function apply(job: JobCore, command: Command): Transitioned {
  const refusal = guard(job, command);
  return refusal === null
    ? { ok: true, job: { ...job, ...effect(job, command) } }
    : { ok: false, refusal };
}

function guard(job: JobCore, command: Command): Refusal | null {
  // A token is checked first: its holder must learn that it was superseded, whatever came after.
  if ("token" in command && !holds(job, command.token)) return "stale_token";
  if (!allows(command.do satisfies Transition, job.state)) return "illegal_transition";
  switch (command.do) {
    case "promote":
      return job.dueAt !== null && job.dueAt > command.now ? "not_due" : null;
    case "claim":
      return isExpired(job, command.now) ? "expired" : null;
    case "expire":
      return isExpired(job, command.now) ? null : "not_expired";
    case "reprocess":
    case "discard":
      return job.reprocessed ? "illegal_transition" : null;
    default:
      return null;
  }
}

const holds = (job: JobCore, token: Token): boolean =>
  job.state === "running" && job.claimId === token.claimId && job.claimNo === token.claimNo;

const isExpired = (job: JobCore, now: number): boolean =>
  job.expiresAt !== null && job.expiresAt <= now;

function effect(job: JobCore, command: Command): Partial<JobCore> {
  switch (command.do) {
    case "promote":
      return { state: "ready", dueAt: null };
    case "claim":
      return {
        state: "running",
        claimId: command.claimId,
        claimNo: job.claimNo + 1,
        attempt: job.attempt + 1,
      };
    case "renew":
      return {};
    case "complete":
      return { state: "completed" };
    case "fail":
      return { state: "dead" };
    case "cancelAck":
      return { state: "cancelled" };
    case "retry":
      return backToScheduled(job, command.dueAt);
    case "snooze":
      return { ...backToScheduled(job, command.dueAt), attempt: job.attempt - 1 };
    case "release":
      return backToReady(job);
    case "lapse":
      return lapse(job, command.charge, command.now);
    case "cancel":
      return job.state === "running"
        ? { cancelRequested: true }
        : { state: "cancelled", dueAt: null };
    case "expire":
      return { state: "expired", dueAt: null };
    case "reprocess":
      return { reprocessed: true };
    case "discard":
      return { state: "discarded" };
    case "delete":
      return { state: "deleted", dueAt: null };
  }
}

function backToScheduled(job: JobCore, dueAt: number): Partial<JobCore> {
  if (job.cancelRequested) return { state: "cancelled" };
  return { state: "scheduled", claimId: null, dueAt };
}

function backToReady(job: JobCore): Partial<JobCore> {
  if (job.cancelRequested) return { state: "cancelled", attempt: job.attempt - 1 };
  return { state: "ready", claimId: null, attempt: job.attempt - 1 };
}

function lapse(job: JobCore, charge: LapseCharge, now: number): Partial<JobCore> {
  if (charge === "spared") return backToReady(job);
  const crashCount = job.crashCount + 1;
  if (crashCount >= maxCrashes) return { state: "dead", crashCount };
  return { ...backToScheduled(job, now), crashCount };
}

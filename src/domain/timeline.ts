// What happened to a job, one entry per run. Bounded, because a job may snooze for ever.

import type { JobError } from "./error-class.ts";
import { type Token, tokenText } from "./token.ts";

export type RunOutcome =
  | "completed"
  | "retried"
  | "snoozed"
  | "released"
  | "cancelled"
  | "dead"
  | "lapsed";

export interface TimelineEntry {
  /** `claimId/claimNo`: a repeated settle finds itself by it. */
  readonly token: string;
  readonly attempt: number;
  readonly worker: string;
  readonly startedAt: string;
  readonly endedAt: string;
  readonly outcome: RunOutcome;
  readonly errorClass?: string;
  readonly fingerprint?: string;
  readonly message?: string;
  /** Of a robot that said what kind of failure it was. */
  readonly exceptionType?: "application" | "business";
  /** How many snoozes in a row this entry stands for. */
  readonly times?: number;
  /** How many of them were probes of a breaker that failed, and cost no attempt. */
  readonly probes?: number;
}

export type Timeline = readonly TimelineEntry[];

const keptFirst = 3;
const keptLast = 20;
const maxBytes = 8_192;

export function appendEntry(timeline: Timeline, entry: TimelineEntry): Timeline {
  const merged = mergeSnooze(timeline, entry);
  const kept =
    merged.length <= keptFirst + keptLast
      ? merged
      : [...merged.slice(0, keptFirst), ...merged.slice(-keptLast)];
  return fitBytes(kept);
}

function mergeSnooze(timeline: Timeline, entry: TimelineEntry): Timeline {
  const last = timeline.at(-1);
  if (last?.outcome !== "snoozed" || entry.outcome !== "snoozed") return [...timeline, entry];
  const probes = (last.probes ?? 0) + (entry.probes ?? 0);
  const merged = {
    ...{ ...entry, startedAt: last.startedAt, times: (last.times ?? 1) + 1 },
    ...(probes > 0 ? { probes } : {}),
  };
  return [...timeline.slice(0, -1), merged];
}

/** Since the last run that cost an attempt. */
export function freeProbes(timeline: Timeline): number {
  const costly = timeline.findLastIndex(({ outcome }) => outcome === "retried");
  return timeline.slice(costly + 1).reduce((sum, { probes = 0 }) => sum + probes, 0);
}

function fitBytes(timeline: Timeline): Timeline {
  let kept = timeline;
  while (kept.length > 1 && byteLength(kept) > maxBytes) {
    // The oldest entry after the first ones tells least.
    const drop = Math.min(keptFirst, kept.length - 2);
    kept = [...kept.slice(0, drop), ...kept.slice(drop + 1)];
  }
  return kept;
}

const byteLength = (timeline: Timeline): number =>
  new TextEncoder().encode(JSON.stringify(timeline)).length;

export function entryFor(timeline: Timeline, token: Token): TimelineEntry | undefined {
  const text = tokenText(token);
  return timeline.find((entry) => entry.token === text);
}

export function errorFields(
  error: JobError | undefined,
): Pick<TimelineEntry, "errorClass" | "fingerprint" | "message"> | Record<string, never> {
  if (error === undefined) return {};
  return { errorClass: error.class, fingerprint: error.fingerprint, message: error.message };
}

// Which of the slots that are due make a job, and which were missed for good.

import { lastSlots, nextSlot, type Schedule, slotsBetween } from "./schedule.ts";

export const missedSlotPolicies = ["skip", "last", "all"] as const;
export type MissedSlots = (typeof missedSlotPolicies)[number];

/** A slot that is first seen later than this was missed. */
const graceMs = 60_000;

interface DueSpan {
  readonly after: Date;
  readonly now: Date;
  readonly seenAt?: Date;
}

export interface DueSlots {
  /** Slots that make a job each, the oldest first. */
  readonly slots: readonly Date[];
  /** The first slot that was passed over; null: none was. */
  readonly missedFrom: Date | null;
  /** null: the expression names no day that comes. */
  readonly next: Date | null;
}

/**
 * `after` is the last instant whose slots have been dealt with, `seenAt` when the one who fires began to
 * look: however long it had to do with other triggers since, nothing is missed for that.
 */
export function dueSlots(
  schedule: Schedule,
  { after, now, seenAt = now }: DueSpan,
  policy: { readonly missedSlots: MissedSlots; readonly maxCatchUp: number },
): DueSlots {
  const next = nextSlot(schedule, now);
  const first = nextSlot(schedule, after);
  if (first === null || first > now) return { slots: [], missedFrom: null, next };
  const seen = Math.min(seenAt.getTime(), now.getTime());
  const missedUntil = new Date(Math.max(after.getTime(), seen - graceMs));
  const onTime = slotsBetween(schedule, missedUntil, now, Number.POSITIVE_INFINITY);
  const wanted = wantedOfMissed(policy, onTime.length);
  const missed = wanted === 0 ? [] : lastSlots(schedule, after, missedUntil, wanted);
  const slots = [...missed, ...onTime];
  const oldest = slots[0] ?? next;
  return { slots, missedFrom: oldest === null || first < oldest ? first : null, next };
}

function wantedOfMissed(
  { missedSlots, maxCatchUp }: { readonly missedSlots: MissedSlots; readonly maxCatchUp: number },
  onTime: number,
): number {
  if (missedSlots === "all") return maxCatchUp;
  return missedSlots === "last" && onTime === 0 ? 1 : 0;
}

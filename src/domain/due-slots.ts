// Which of the slots that are due make a job, and which were missed for good.

import { lastSlots, nextSlot, type Schedule, slotsBetween } from "./schedule.ts";

export const missedSlotPolicies = ["skip", "last", "all"] as const;
export type MissedSlots = (typeof missedSlotPolicies)[number];

/** A slot that is handled later than this was missed. */
const graceMs = 60_000;

export interface DueSlots {
  /** Slots that make a job each, the oldest first. */
  readonly slots: readonly Date[];
  /** The first slot that was passed over; null: none was. */
  readonly missedFrom: Date | null;
  /** null: the expression names no day that comes. */
  readonly next: Date | null;
}

/** `after` is the last instant whose slots have been dealt with. */
export function dueSlots(
  schedule: Schedule,
  { after, now }: { readonly after: Date; readonly now: Date },
  policy: { readonly missedSlots: MissedSlots; readonly maxCatchUp: number },
): DueSlots {
  const next = nextSlot(schedule, now);
  const first = nextSlot(schedule, after);
  if (first === null || first > now) return { slots: [], missedFrom: null, next };
  const missedUntil = new Date(Math.max(after.getTime(), now.getTime() - graceMs));
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

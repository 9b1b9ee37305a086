// When a cron expression fires in a time zone. Between two changes of its offset local time is plain
// arithmetic, so the search goes from change to change. The rules: docs/design/triggers.md.

import { type CronExpression, namesDay, parseCron } from "./cron.ts";
import { createTimeZone, nextChange, type TimeZone } from "./time-zone.ts";

export interface Schedule {
  readonly cron: CronExpression;
  readonly zone: TimeZone;
}

const dayMs = 86_400_000;
/** A fifth Monday in February stays away for forty years at most. */
const horizonMs = 41 * 366 * dayMs;
/** More than the offsets of a zone differ by, ever: nearer than this to a named time its changes matter. */
const nearMs = 2 * dayMs;

export function createSchedule(cron: string, timeZone: string): Schedule {
  return { cron: parseCron(cron), zone: createTimeZone(timeZone) };
}

/** The first slot after this instant; null: the expression names no day that comes. */
export function nextSlot(schedule: Schedule, after: Date): Date | null {
  const { cron, zone } = schedule;
  const end = after.getTime() + horizonMs;
  let from = Math.floor(after.getTime() / 1000) * 1000;
  // Cron knows nothing smaller than a second, and this very one is not "after".
  let stepMs = 1_000;
  let notBefore = cron.everyHour ? Number.NEGATIVE_INFINITY : repeatedUntil(zone, from);
  while (from < end) {
    const offset = zone.offsetAt(from);
    const named = nextNamed(cron, Math.max(from + stepMs + offset, notBefore), end + offset);
    if (named === null) return null;
    const at = named - offset;
    if (at - from > 3 * nearMs) {
      // No named time lies in between, so no change in between can matter.
      from = at - nearMs;
      stepMs = 0;
      notBefore = Number.NEGATIVE_INFINITY;
      continue;
    }
    const change = nextChange(zone, from, at);
    if (change === null) return new Date(at);
    const gapEnd = change.at + change.after;
    if (!cron.everyHour && named < gapEnd) return new Date(change.at);
    notBefore = cron.everyHour ? Number.NEGATIVE_INFINITY : change.at + change.before;
    from = change.at;
    stepMs = 0;
  }
  return null;
}

/** Local time up to which everything at this instant's local time has been there once before. */
function repeatedUntil(zone: TimeZone, instant: number): number {
  const change = nextChange(zone, instant - dayMs, instant);
  return change === null ? Number.NEGATIVE_INFINITY : change.at + change.before;
}

/** The first local time from `local` on that the expression names; both as if local time were UTC. */
function nextNamed(cron: CronExpression, local: number, end: number): number | null {
  let day = Math.floor(local / dayMs) * dayMs;
  const today = nextTimeOfDay(cron, Math.ceil((local - day) / 1000));
  if (today !== null && isNamed(cron, day)) return day + today * 1000;
  const first = nextTimeOfDay(cron, 0) ?? 0;
  for (day += dayMs; day <= end; day = nextCandidate(cron, day)) {
    if (isNamed(cron, day)) return day + first * 1000;
  }
  return null;
}

/** The next day, or the first of the next month when the whole month is out of the question. */
function nextCandidate(cron: CronExpression, day: number): number {
  const date = new Date(day);
  if (cron.months.has(date.getUTCMonth() + 1)) return day + dayMs;
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
}

function isNamed(cron: CronExpression, day: number): boolean {
  const date = new Date(day);
  return namesDay(cron, date.getUTCFullYear(), date.getUTCMonth() + 1, date.getUTCDate());
}

/** Seconds since midnight, from `from` on; null when the day has no more. */
function nextTimeOfDay(cron: CronExpression, from: number): number | null {
  for (const hour of cron.hours) {
    if (hour * 3600 + 3599 < from) continue;
    for (const minute of cron.minutes) {
      const start = hour * 3600 + minute * 60;
      if (start + 59 < from) continue;
      const second = cron.seconds.find((value) => start + value >= from);
      if (second !== undefined) return start + second;
    }
  }
  return null;
}

/** All slots in (after, until], at most `most` of them, the first ones. */
export function slotsBetween(schedule: Schedule, after: Date, until: Date, most: number): Date[] {
  const slots: Date[] = [];
  let slot = nextSlot(schedule, after);
  while (slot !== null && slot <= until && slots.length < most) {
    slots.push(slot);
    slot = nextSlot(schedule, slot);
  }
  return slots;
}

/**
 * The last `count` slots in (after, until]. Looks back in doubling windows, so that what it costs
 * depends on `count` and not on how long ago `after` was.
 */
export function lastSlots(schedule: Schedule, after: Date, until: Date, count: number): Date[] {
  for (let windowMs = 60_000; ; windowMs *= 2) {
    const from = Math.max(after.getTime(), until.getTime() - windowMs);
    const slots = slotsBetween(schedule, new Date(from), until, Number.POSITIVE_INFINITY);
    if (slots.length >= count || from === after.getTime()) return slots.slice(-count);
  }
}

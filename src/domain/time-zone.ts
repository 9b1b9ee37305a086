// IANA time zones: how far local time is ahead of UTC, and when that changes. The data is Node's own.

import { MillraceError } from "./errors.ts";

export interface TimeZone {
  readonly name: string;
  /** Milliseconds that local time is ahead of UTC at this instant. */
  offsetAt(instant: number): number;
}

/** The first instant with another offset, and both offsets. */
export interface OffsetChange {
  readonly at: number;
  readonly before: number;
  readonly after: number;
}

const dayMs = 86_400_000;

export function createTimeZone(name: string): TimeZone {
  const format = formatOf(name);
  if (format.resolvedOptions().timeZone === "UTC") return { name, offsetAt: () => 0 };
  return {
    name,
    offsetAt(instant) {
      const second = Math.floor(instant / 1000) * 1000;
      const at: Record<string, number> = {};
      for (const { type, value } of format.formatToParts(second)) at[type] = Number(value);
      const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second: seconds = 0 } = at;
      return Date.UTC(year, month - 1, day, hour, minute, seconds) - second;
    },
  };
}

function formatOf(name: string): Intl.DateTimeFormat {
  try {
    // Names only: a bare offset knows no daylight saving, and not every Node takes it.
    if (!/^[A-Za-z]/.test(name)) throw new RangeError(name);
    return new Intl.DateTimeFormat("en-US", {
      timeZone: name,
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
  } catch (cause) {
    throw new MillraceError(
      "SCHEDULE_INVALID",
      `"${name}" is not the name of a time zone; an example of one is "Europe/Lisbon".`,
      { cause },
    );
  }
}

/** The first change in (from, to], to the second; null when there is none. No zone changes twice in a day. */
export function nextChange(zone: TimeZone, from: number, to: number): OffsetChange | null {
  const before = zone.offsetAt(from);
  for (let low = from; low < to; low += dayMs) {
    const high = Math.min(low + dayMs, to);
    if (zone.offsetAt(high) === before) continue;
    const at = firstOther(zone, low, high, before);
    return { at, before, after: zone.offsetAt(at) };
  }
  return null;
}

function firstOther(zone: TimeZone, from: number, to: number, offset: number): number {
  let low = Math.floor(from / 1000);
  let high = Math.ceil(to / 1000);
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (zone.offsetAt(middle * 1000) === offset) low = middle;
    else high = middle;
  }
  return high * 1000;
}

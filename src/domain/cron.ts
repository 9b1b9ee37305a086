// Cron expressions: five fields, or six with seconds first. Which days and times of day they name;
// zones and instants are the schedule's business.

import { type FieldRange, invalid, isOpen, parseField, parseValue } from "./cron-field.ts";
import { MillraceError } from "./errors.ts";

export interface CronExpression {
  readonly seconds: readonly number[];
  readonly minutes: readonly number[];
  readonly hours: readonly number[];
  readonly months: ReadonlySet<number>;
  readonly day: DayOfMonth;
  readonly weekday: Weekday;
  /** It goes by elapsed time instead of naming times of the day. */
  readonly everyHour: boolean;
}

interface DayOfMonth {
  readonly any: boolean;
  readonly days: ReadonlySet<number>;
  readonly last: boolean;
}

interface Weekday {
  readonly any: boolean;
  readonly days: ReadonlySet<number>;
  readonly last: ReadonlySet<number>;
  readonly nth: readonly { readonly day: number; readonly n: number }[];
}

const monthNames = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split(" ");
// Sunday is 0 and 7.
const dayNames = "SUN MON TUE WED THU FRI SAT".split(" ");

const second: FieldRange = { name: "second", min: 0, max: 59 };
const minute: FieldRange = { name: "minute", min: 0, max: 59 };
const hour: FieldRange = { name: "hour", min: 0, max: 23 };
const dayOfMonth: FieldRange = { name: "day of month", min: 1, max: 31 };
const month: FieldRange = { name: "month", min: 1, max: 12, names: monthNames };
const dayOfWeek: FieldRange = { name: "day of week", min: 0, max: 7, names: dayNames };

const macros: Readonly<Record<string, string>> = {
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
  "@monthly": "0 0 1 * *",
  "@weekly": "0 0 * * 0",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@hourly": "0 * * * *",
};

export function parseCron(expression: string): CronExpression {
  const text = expression.trim();
  const fields = (macros[text.toLowerCase()] ?? text).split(/\s+/);
  if (fields.length === 5) fields.unshift("0");
  const [seconds, minutes, hours, days, months, weekdays, ...more] = fields;
  if (
    seconds === undefined ||
    minutes === undefined ||
    hours === undefined ||
    days === undefined ||
    months === undefined ||
    weekdays === undefined ||
    more.length > 0
  ) {
    throw new MillraceError(
      "SCHEDULE_INVALID",
      "A cron expression has five fields, or six with seconds first.",
    );
  }
  const hoursOfDay = parseField(hours, hour);
  return {
    seconds: parseField(seconds, second),
    minutes: parseField(minutes, minute),
    hours: hoursOfDay,
    months: new Set(parseField(months, month)),
    day: parseDays(days),
    weekday: parseWeekdays(weekdays),
    everyHour: hours.startsWith("*") || hoursOfDay.length === 24,
  };
}

function parseDays(text: string): DayOfMonth {
  const parts = text.split(",");
  const plain = parts.filter((part) => part.toUpperCase() !== "L");
  const days = plain.length === 0 ? [] : parseField(plain.join(","), dayOfMonth);
  return { any: isOpen(text), days: new Set(days), last: plain.length < parts.length };
}

function parseWeekdays(text: string): Weekday {
  const days = new Set<number>();
  const last = new Set<number>();
  const nth: { day: number; n: number }[] = [];
  for (const part of text.split(",")) {
    const [, name, suffix] = /^(\w+?)(L|#\d+)$/i.exec(part) ?? [];
    if (name === undefined || suffix === undefined) {
      for (const day of parseField(part, dayOfWeek)) days.add(day % 7);
      continue;
    }
    const day = parseValue(name, part, dayOfWeek) % 7;
    const n = Number(suffix.slice(1));
    if (suffix.toUpperCase() === "L") last.add(day);
    else if (n >= 1 && n <= 5) nth.push({ day, n });
    else throw invalid(part, dayOfWeek, "after # comes a number from 1 to 5");
  }
  return { any: isOpen(text), days, last, nth };
}

/** `month` counts from 1. As in every cron: two restricted day fields mean either, otherwise both. */
export function namesDay(cron: CronExpression, year: number, month: number, day: number): boolean {
  if (!cron.months.has(month)) return false;
  const lastDay = new Date(Date.UTC(year, month, 0)).getUTCDate();
  const weekday = new Date(Date.UTC(year, month - 1, day)).getUTCDay();
  const byDay = cron.day.days.has(day) || (cron.day.last && day === lastDay);
  const byWeekday =
    cron.weekday.days.has(weekday) ||
    (cron.weekday.last.has(weekday) && day + 7 > lastDay) ||
    cron.weekday.nth.some((nth) => nth.day === weekday && Math.ceil(day / 7) === nth.n);
  return cron.day.any || cron.weekday.any ? byDay && byWeekday : byDay || byWeekday;
}

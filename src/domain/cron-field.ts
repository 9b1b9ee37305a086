// One field of a cron expression: `*`, `?`, numbers, names, ranges, steps and lists of them.

import { MillraceError } from "./errors.ts";

export interface FieldRange {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  /** Names stand for numbers from `min` on. */
  readonly names?: readonly string[];
}

/** The numbers a field stands for, sorted. */
export function parseField(text: string, range: FieldRange): number[] {
  const values = new Set<number>();
  for (const part of text.split(",")) for (const value of parsePart(part, range)) values.add(value);
  return [...values].sort((a, b) => a - b);
}

/** Nothing was said about this field. */
export const isOpen = (text: string): boolean => text === "*" || text === "?";

function parsePart(part: string, range: FieldRange): number[] {
  const [span = "", stepText, ...more] = part.split("/");
  if (more.length > 0) throw invalid(part, range);
  const step = stepText === undefined ? 1 : wholeNumber(stepText);
  if (step === null || step < 1) throw invalid(part, range, "a step is a number from 1 on");
  const [from, to] = parseSpan(span, part, range, stepText !== undefined);
  if (from > to) throw invalid(part, range, "a range goes from the lower to the higher");
  const values: number[] = [];
  for (let value = from; value <= to; value += step) values.push(value);
  return values;
}

function parseSpan(span: string, part: string, range: FieldRange, stepped: boolean) {
  if (span === "*" || (span === "?" && !stepped)) return [range.min, range.max] as const;
  const [low = "", high, ...more] = span.split("-");
  if (more.length > 0) throw invalid(part, range);
  const from = parseValue(low, part, range);
  if (high !== undefined) return [from, parseValue(high, part, range)] as const;
  return [from, stepped ? range.max : from] as const;
}

export function parseValue(text: string, part: string, range: FieldRange): number {
  const named = range.names?.indexOf(text.toUpperCase()) ?? -1;
  const value = named >= 0 ? range.min + named : wholeNumber(text);
  if (value === null || value < range.min || value > range.max) throw invalid(part, range);
  return value;
}

const wholeNumber = (text: string): number | null => (/^\d{1,4}$/.test(text) ? Number(text) : null);

export function invalid(part: string, range: FieldRange, why?: string): MillraceError {
  const allowed = why ?? `values go from ${range.min} to ${range.max}`;
  return new MillraceError(
    "SCHEDULE_INVALID",
    `"${part}" cannot stand in the ${range.name} field of a cron expression: ${allowed}.`,
    { details: { field: range.name, part } },
  );
}

// What every queue refuses in the same words.

import { MillraceError } from "../domain/errors.ts";

/** A delay in milliseconds; 0 when none is given. */
export function checkDelay(delayMs: number | undefined): number {
  if (delayMs === undefined) return 0;
  if (Number.isFinite(delayMs) && delayMs >= 0) return Math.ceil(delayMs);
  throw new MillraceError("OPTION_INVALID", "delayMs must be a number of milliseconds from 0 on.");
}

export function checkMax(max: number): number {
  if (Number.isInteger(max) && max >= 1) return max;
  throw new MillraceError("OPTION_INVALID", "max must be a whole number from 1 on.");
}

/** A limit such as maxInMemory; Infinity when none is given. */
export function checkLimit(name: string, limit: number | undefined): number {
  if (limit === undefined) return Number.POSITIVE_INFINITY;
  if (Number.isInteger(limit) && limit >= 1) return limit;
  throw new MillraceError("OPTION_INVALID", `${name} must be a whole number from 1 on.`);
}

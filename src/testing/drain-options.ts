// Apart from drain itself: a user's compiler reads this file, and it must not lead to the driver's types.

import { checkOptions, checkWait, type Known, knownNames } from "../domain/check-options.ts";
import { isOn, whole } from "../domain/setting-values.ts";

export interface DrainOptions {
  /** Moves virtual time on to whatever falls due next, again and again, until nothing waits. */
  readonly advance?: boolean;
  /** How many handlers run at once; 1 keeps the order the same every time. */
  readonly concurrency?: number;
  /** More runs than this are taken for a job that comes back for ever. */
  readonly maxRuns?: number;
  /** Real time. Handlers that still run then are aborted. */
  readonly timeoutMs?: number;
  /** Throws the first error of a handler (after everything has run). */
  readonly throwErrors?: boolean;
}

const known = knownNames({
  ...{ advance: true, concurrency: true, maxRuns: true, timeoutMs: true, throwErrors: true },
} satisfies Known<DrainOptions>);

export function checkDrain(options: DrainOptions): void {
  checkOptions("drain's options", options, known);
  const { advance, concurrency = 1, maxRuns = 1, timeoutMs, throwErrors } = options;
  isOn("advance", advance);
  isOn("throwErrors", throwErrors);
  whole("concurrency", concurrency, 1);
  if (maxRuns !== Number.POSITIVE_INFINITY) whole("maxRuns", maxRuns, 1);
  checkWait("timeoutMs", timeoutMs);
}

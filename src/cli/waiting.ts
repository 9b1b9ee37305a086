// Commands that run until they are stopped, or for so long.

import { systemClock } from "../runtime/clock.ts";

/** A timer holds at most 24 days. */
const longestSleepMs = 60_000;

export async function untilStopped(stopped: AbortSignal, seconds?: number): Promise<void> {
  const untilMs = systemClock.monotonic() + (seconds ?? Number.POSITIVE_INFINITY) * 1_000;
  while (!stopped.aborted && systemClock.monotonic() < untilMs) {
    const leftMs = untilMs - systemClock.monotonic();
    await systemClock.sleep(Math.min(leftMs, longestSleepMs), stopped);
  }
}

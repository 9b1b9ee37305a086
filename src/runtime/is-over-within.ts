import type { Clock } from "./clock.ts";

/** Waits for the end of something, but no longer than this. */
export async function isOverWithin(
  ended: Promise<unknown>,
  ms: number,
  clock: Clock,
): Promise<boolean> {
  const enough = new AbortController();
  try {
    return await Promise.race([
      ended.then(() => true),
      clock.sleep(ms, enough.signal).then(() => false),
    ]);
  } finally {
    enough.abort();
  }
}

import type { NewJob } from "./store.ts";

const longOnAverage = 400;

/** Too long to go along with a notice, and long enough for a place of their own. */
export function areLong(jobs: readonly NewJob[]): boolean {
  let letters = 0;
  for (const { payload } of jobs) letters += payload.length;
  return letters > longOnAverage * jobs.length;
}

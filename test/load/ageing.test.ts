// Ageing at full counts.

import { expect, test } from "vitest";
import { ageingTrial } from "../support/ageing-trial.ts";

test("ten minutes of high-priority load beyond the workers' capacity, in virtual time", async () => {
  const told = await ageingTrial({ ticks: 600, workers: 4, concurrency: 2, ageingStepMs: 6_000 });
  console.log(JSON.stringify(told));
  expect(told.overtakings).toBeGreaterThan(0);
  expect(told.worstBeyondBoundMs).toBeLessThanOrEqual(0);
  // All but those that came in the last minute of waiting and have others of their kind before them.
  expect(told.lowStarted).toBeGreaterThan(0.6 * told.lowEnqueued);
});

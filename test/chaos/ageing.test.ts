// Small counts of what test/load/ageing.test.ts does in full.

import { expect, test } from "vitest";
import { ageingTrial } from "../support/ageing-trial.ts";

const small = { ticks: 40, workers: 2, concurrency: 2 };

test("under high-priority load beyond the workers' capacity nobody is overtaken by what came later than the bound", async () => {
  const told = await ageingTrial({ ...small, ageingStepMs: 1_000 });
  expect(told.overtakings).toBeGreaterThan(0);
  expect(told.worstBeyondBoundMs).toBeLessThanOrEqual(0);
  expect(told.lowStarted).toBeGreaterThan(0);
});

test("without ageing, low priority waits for ever under the same load", async () => {
  const told = await ageingTrial({ ...small, ticks: 20, ageingStepMs: null });
  expect([told.lowEnqueued > 0, told.lowStarted]).toEqual([true, 0]);
});

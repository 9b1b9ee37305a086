import { test } from "vitest";
import { expectGentleBreaker } from "../support/breaker-soak.ts";

test("four processes with 10,000 jobs probe a failing platform no more than allowed, and come back gently", async () => {
  await expectGentleBreaker({
    ...{ jobs: 10_000, concurrency: 20, openCooldownSeconds: 10, returnSpreadSeconds: 30 },
    ...{ halfOpenProbeCount: 3, relapses: 4, timeoutMs: 400_000 },
  });
});

import { test } from "vitest";
import { expectEachDelayedOnce } from "../support/delayed-jobs.ts";

test("two managers and four workers run 50,000 delayed jobs once each", async () => {
  await expectEachDelayedOnce({ jobs: 50_000, spreadMs: 60_000 });
});

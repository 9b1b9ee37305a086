import { test } from "vitest";
import { expectEachCompletedOnce } from "../support/concurrency.ts";

test("eight processes complete 100,000 jobs once each, and no two runs of a job overlap", async () => {
  await expectEachCompletedOnce({ processes: 8, jobs: 100_000 });
});

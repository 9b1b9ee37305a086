import { test } from "vitest";
import { expectEachCompletedOnce } from "../support/concurrency.ts";

test("four processes complete 4,000 jobs once each, and no two runs of a job overlap", async () => {
  await expectEachCompletedOnce({ processes: 4, jobs: 4_000 });
});

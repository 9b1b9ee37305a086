import { test } from "vitest";
import { robotsFinishEverything } from "../support/robots.ts";

test("robots that lease, renew, stall, die and finish end every item once, and no two hold one", async () => {
  await robotsFinishEverything({
    robots: 30,
    items: 600,
    leaseSeconds: 1,
    drainMs: 50_000,
    mishaps: 0.02,
  });
});

import { test } from "vitest";
import { robotsFinishEverythingOverThere } from "../support/robots.ts";

test("200 robots finish 50,000 items, none lost and none in two live leases", async () => {
  await robotsFinishEverythingOverThere({
    robots: 200,
    items: 50_000,
    leaseSeconds: 5,
    drainMs: 800_000,
    mishaps: 0.002,
  });
});

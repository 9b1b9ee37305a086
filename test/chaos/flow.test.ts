// Small counts of what test/load/flow.test.ts does in full.

import { expect, test } from "vitest";
import { sharesByWeight, smallBesideDeep } from "../support/fair-claims.ts";
import { limitsUnderKills } from "../support/limit-trial.ts";

test("limits hold while worker processes are killed, and no slot is lost", async () => {
  const { lapsed } = await limitsUnderKills({ processes: 3, jobs: 60, kills: 3, seed: 7 });
  // A run in which nobody died at work has tested nothing.
  expect(lapsed).toBeGreaterThan(0);
});

test("a tenant's job is claimed within as many claims as there are tenants", async () => {
  await smallBesideDeep(3_000, 20);
});

test("weights of 3 : 1 give shares of 3 : 1", async () => {
  expect(Math.abs((await sharesByWeight(800)) - 0.75)).toBeLessThan(0.05 * 0.75);
});

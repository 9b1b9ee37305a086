// Flow control at full counts.

import { expect, test } from "vitest";
import { sharesByWeight, smallBesideDeep } from "../support/fair-claims.ts";
import { limitsUnderKills } from "../support/limit-trial.ts";
import { overload } from "../support/overload.ts";

test("100 jobs of one tenant beside 100,000 of another", () => smallBesideDeep(100_000, 100));

test("weights of 3 : 1 give shares of 3 : 1", async () => {
  const share = await sharesByWeight(10_000);
  console.log(JSON.stringify({ share }));
  expect(Math.abs(share - 0.75)).toBeLessThan(0.05 * 0.75);
});

test("limits hold while 8 worker processes are killed at random, and no slot is lost", async () => {
  const told = await limitsUnderKills({ processes: 8, jobs: 1_200, kills: 40, seed: 20_260 });
  console.log(JSON.stringify(told));
  expect(told.lapsed).toBeGreaterThan(0);
});

test("ten times overload at the door for a minute", async () => {
  const told = await overload({ seconds: 60, limitPerSecond: 200, times: 10 });
  console.log(JSON.stringify(told));
  expect(told.accepted).toBe(told.completed);
  expect(told.refused).toBeGreaterThan(8 * told.accepted);
  // Flat: what it grows by does not depend on how much was refused.
  expect(told.grewByMb.producer).toBeLessThan(24);
  expect(told.grewByMb.worker).toBeLessThan(24);
  expect(told.refusalMs.p99).toBeLessThan(50);
  expect(told.quietRefused).toBe(0);
  expect(told.quietP50Ms[1]).toBeLessThan(2 * told.quietP50Ms[0]);
});

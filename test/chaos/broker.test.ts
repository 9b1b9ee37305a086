import { expect, test } from "vitest";
import { outlastsStorm } from "../support/broker-storm.ts";

const seed = Number(process.env.CHAOS_SEED ?? 20_261);

test(`brokered jobs outlast a Redis that is broken at random (seed ${seed})`, async () => {
  expect.hasAssertions();
  await outlastsStorm({ seed, jobs: 2_000, processes: 2, rounds: 1, drainMs: 30_000 });
});

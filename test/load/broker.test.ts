// 20,000 jobs over a Redis that is killed, restarted, flushed, stopped and filled again and again.
// A seed fixes the draws, not their timing. CHAOS_SEED and CHAOS_JOBS vary it.

import { expect, test } from "vitest";
import { outlastsStorm } from "../support/broker-storm.ts";

const seed = Number(process.env.CHAOS_SEED ?? 20_262);
const jobs = Number(process.env.CHAOS_JOBS ?? 20_000);

test(`brokered jobs outlast a Redis that is broken for long (seed ${seed})`, async () => {
  expect.hasAssertions();
  await outlastsStorm({ seed, jobs, processes: 4, rounds: 8, drainMs: 60_000 });
});

// The transition table is the only place that knows the rules: random commands go through the pure core
// and through PostgreSQL, and after each of them both must say the same of every job.

import fc from "fast-check";
import { afterAll, beforeAll, it } from "vitest";
import { openTestStore } from "../support/store.ts";
import { Rehearsal } from "./rehearsal.ts";
import type { Step } from "./rehearsal-step.ts";
import { Stage } from "./stage.ts";

const slots = 2;
const slot = fc.nat({ max: slots - 1 });
/** Whose token: mostly the current one, and in all other cases one that must be refused. */
const whose = fc.oneof(
  { weight: 12, arbitrary: fc.constant("current" as const) },
  {
    weight: 1,
    arbitrary: fc.constantFrom("older", "other claim", "next number", "other job", "never"),
  },
);
const later = fc.boolean();

const step = fc.oneof(
  { weight: 10, arbitrary: fc.record({ do: fc.constant("claim"), slot }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("claimAll") }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant("promote") }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom("makeDue", "enqueue"), slot, later }) },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constantFrom("complete", "fail", "cancelAck", "release", "renew", "lose"),
      slot,
      whose,
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constantFrom("retry", "snooze"), slot, whose, later }),
  },
  {
    weight: 7,
    arbitrary: fc.record({
      do: fc.constant("lapse"),
      slot,
      whose,
      charge: fc.constantFrom("charged", "charged", "spared"),
      alive: fc.oneof({ weight: 4, arbitrary: fc.constant(false) }, fc.constant(true)),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constantFrom(
        ...["cancel", "cancel", "reprocess", "reprocess", "discard", "discard", "delete"],
      ),
      slot,
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom("makeExpired", "expire"), slot }) },
);

/** Stories that chance tells too rarely. */
const current = { slot: 0, whose: "current" };
const claimed = { do: "claim", slot: 0 };
const crash = [claimed, { do: "lapse", charge: "charged", alive: false, ...current }];
const stories = [
  [claimed, { do: "fail", ...current }, { do: "reprocess", slot: 0 }, { do: "discard", slot: 0 }],
  [claimed, { do: "fail", ...current }, { do: "discard", slot: 0 }, { do: "reprocess", slot: 0 }],
  [claimed, { do: "makeExpired", slot: 0 }, { do: "expire" }, { do: "retry", ...current }],
  [...crash, { do: "promote" }, ...crash, { do: "promote" }, ...crash],
  [claimed, { do: "cancel", slot: 0 }, { do: "lose", ...current }],
  [{ do: "claimAll" }, { do: "cancel", slot: 0 }, crash[1], { do: "delete", slot: 0 }],
];

let stage: Stage;
beforeAll(async () => {
  stage = new Stage(await openTestStore());
  // Nothing crashes here, and thousands of commits need not wait for the disk.
  await stage.sql(
    "do $$ begin execute format('alter database %I set synchronous_commit = off', current_database()); end $$",
  );
});
afterAll(() => stage.close());

it("agrees with the pure core about every command, whatever came before", async () => {
  const steps: fc.Arbitrary<unknown[]> = fc.array(step, {
    minLength: 10,
    maxLength: 60,
    size: "max",
  });
  const property = fc.asyncProperty(steps, async (list: readonly unknown[]) => {
    const rehearsal = await Rehearsal.begin(stage, slots);
    for (const one of list) await rehearsal.perform(one as Step);
    await rehearsal.checkEnded();
  });
  const examples = stories.map((story): [unknown[]] => [story]);
  await fc.assert(property, { numRuns: 100, interruptAfterTimeLimit: 40_000, examples });
}, 180_000);

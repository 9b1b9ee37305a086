// Random operations, delays, crashes of takers and restarts of the server go to a queue and to the
// model of one; after each of them both must say the same.

import fc from "fast-check";
import { it } from "vitest";
import { QueueRehearsal, type QueueStep } from "./queue-rehearsal.ts";
import { anHour, type MakeStage, type QueueStage } from "./queue-stage.ts";

const pick = fc.nat({ max: 1_000 });
const handle = fc.nat({ max: 2 });
const priority = fc.constantFrom("high", "normal", "low");
const delayMs = fc.oneof(
  { weight: 4, arbitrary: fc.constant(0) },
  { weight: 3, arbitrary: fc.integer({ min: 1, max: 60 }) },
  { weight: 1, arbitrary: fc.constant(anHour) },
);
/** Few ids, so that they meet. */
const id = fc.constantFrom(...Array.from({ length: 8 }, (_, i) => `id-${i}`));
const item = fc.record({ id, priority, delayMs });

const step: fc.Arbitrary<QueueStep> = fc.oneof(
  { weight: 12, arbitrary: fc.record({ do: fc.constant("enqueue" as const), handle, item }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("enqueueMany" as const),
      handle,
      items: fc.array(item, { maxLength: 6 }),
    }),
  },
  {
    weight: 10,
    arbitrary: fc.record({
      do: fc.constant("take" as const),
      handle,
      max: fc.integer({ min: 1, max: 4 }),
    }),
  },
  { weight: 5, arbitrary: fc.record({ do: fc.constant("ack" as const), pick }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("bury" as const), pick }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant("release" as const), pick, delayMs }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("requeue" as const), handle, id }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("advance" as const),
      ms: fc.integer({ min: 1, max: 60 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("purge" as const), handle }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("crash" as const), handle }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("restart" as const) }) },
);

export interface PropertyOptions {
  readonly numRuns?: number;
  readonly maxSteps?: number;
  readonly timeLimitMs?: number;
  /** For a queue whose parts know nothing of each other's ids: no id has two priorities. */
  readonly idsPerPriority?: boolean;
}

/** Crashes and restarts happen where the stage offers them. */
export function queueProperty(
  name: string,
  makeStage: MakeStage<QueueStage>,
  options: PropertyOptions = {},
): void {
  const { numRuns = 100, maxSteps = 80, timeLimitMs = 40_000, idsPerPriority = false } = options;
  it(
    `${name} agrees with a simple model about every operation`,
    async () => {
      const steps = fc.array(step, { minLength: 10, maxLength: maxSteps, size: "max" });
      const property = fc.asyncProperty(steps, async (list) => {
        const stage = await makeStage();
        try {
          const rehearsal = await QueueRehearsal.begin(stage, { idsPerPriority });
          for (const one of list) await rehearsal.perform(one);
          await rehearsal.end();
        } finally {
          await stage.close();
        }
      });
      await fc.assert(property, { numRuns, interruptAfterTimeLimit: timeLimitMs });
    },
    timeLimitMs * 3,
  );
}

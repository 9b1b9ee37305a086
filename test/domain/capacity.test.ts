// Capacity beside a model that looks at every job.

import fc from "fast-check";
import { expect, test } from "vitest";
import { judgeCalls } from "../../src/domain/capacity.ts";

const bounds = ["queue", "tenant in the queue", "tenant"];
const call = fc
  .record({ jobs: fc.integer({ min: 1, max: 6 }), under: fc.subarray(bounds) })
  .map(({ jobs, under }) => new Map(under.map((bound) => [bound, jobs])));
const some = fc.dictionary(fc.constantFrom(...bounds), fc.integer({ min: 0, max: 20 }));

test("a call fits if it fits into all of its bounds, and only what fits takes room", () => {
  fc.assert(
    fc.property(fc.array(call, { maxLength: 12 }), some, some, (calls, capacities, depths) => {
      const judged = judgeCalls(
        calls,
        new Map(Object.entries(capacities)),
        new Map(Object.entries(depths)),
      );
      const there: Record<string, number> = { ...depths };
      for (const [i, wanted] of calls.entries()) {
        const fits = [...wanted].every(
          ([bound, count]) =>
            capacities[bound] === undefined || (there[bound] ?? 0) + count <= capacities[bound],
        );
        expect(judged.full[i] === null).toBe(fits);
        if (fits) for (const [bound, count] of wanted) there[bound] = (there[bound] ?? 0) + count;
        else {
          const { bound, depth, capacity, wanted: count } = judged.full[i] ?? { bound: "?" };
          expect({ depth, capacity, count }).toEqual({
            ...{ depth: there[bound] ?? 0, capacity: capacities[bound] },
            count: wanted.get(bound),
          });
        }
      }
      expect(Object.fromEntries(judged.depths)).toEqual(there);
    }),
  );
});

test("what was within a bound stays within it", () => {
  fc.assert(
    fc.property(fc.array(call, { maxLength: 30 }), some, (calls, capacities) => {
      const { depths } = judgeCalls(calls, new Map(Object.entries(capacities)), new Map());
      for (const [bound, capacity] of Object.entries(capacities))
        expect(depths.get(bound) ?? 0).toBeLessThanOrEqual(capacity);
    }),
  );
});

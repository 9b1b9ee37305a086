import { expect, test } from "vitest";
import type { LaneClaimed } from "../../src/store/flow.ts";
import { LaneFetcher } from "../../src/worker/lane-fetcher.ts";

const queueId = 7;

function stage() {
  let now = 0;
  let claims = 0;
  const lanes = new LaneFetcher({
    types: null,
    pollMs: 60_000,
    monotonic: () => now,
    newClaimId: () => `claim ${++claims}`,
  });
  lanes.serve([queueId]);
  const answer = { jobs: [], waiting: true, reason: null, freeInMs: null } as const;
  return {
    lanes,
    /** Looks once, which takes so long. */
    look(
      visited: LaneClaimed["visited"],
      tookMs = 0,
      found: Partial<LaneClaimed> = {},
    ): number | null {
      const request = lanes.next("lease", 5, true);
      if (request === null) throw new Error("it does not want to look");
      now += tookMs;
      lanes.answered(request, { ...answer, visited, ...found });
      return lanes.waitMs();
    },
    wait(ms: number): void {
      now += ms;
    },
  };
}

test("key after key is looked at without a pause, until all have had their turn", () => {
  const { look } = stage();
  expect(look("some")).toBe(0);
  expect(look("some")).toBe(0);
  expect(look("end")).toBe(0);
  expect(look("some")).toBe(0);
  expect(look("end")).toBeGreaterThan(0);
});

test("where all keys are looked at by one claim, the next one is not sent at once", () => {
  expect(stage().look("all")).toBeGreaterThan(0);
});

test("going round in vain takes a small part of the time, however many keys there are", () => {
  const { look } = stage();
  look("some", 100);
  look("end", 100);
  expect(look("end", 100)).toBeGreaterThanOrEqual(2_000);
});

test("what is found on the way begins the round anew", () => {
  const { look } = stage();
  const jobs = [{}] as unknown as LaneClaimed["jobs"];
  look("end");
  expect(look("some", 0, { jobs })).toBeGreaterThan(0);
});

test("a wake-up goes before all pauses", () => {
  const { lanes, look } = stage();
  look("all");
  lanes.wake([queueId]);
  expect(lanes.waitMs()).toBe(0);
});

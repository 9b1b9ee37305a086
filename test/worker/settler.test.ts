import { expect, test } from "vitest";
import type { ClaimedJob } from "../../src/domain/job.ts";
import type { Outcome } from "../../src/domain/outcome.ts";
import { HeldJob } from "../../src/worker/held-jobs.ts";
import { Settler } from "../../src/worker/settler.ts";

const completed: Outcome = { kind: "completed", result: 1, json: "1" };
const released: Outcome = { kind: "released" };

const heldJob = (id: string, claimNo = 1) =>
  new HeldJob({ id, token: { claimId: `c${claimNo}`, claimNo } } as unknown as ClaimedJob, "lease");
const ended = (held: HeldJob, outcome: Outcome = completed) => ({ held, outcome, durationMs: 1 });

test("two runs of one job are settled apart, each in its turn", () => {
  for (const outcome of [completed, released]) {
    const settler = new Settler();
    const [old, other, again, third] = [
      heldJob("a"),
      heldJob("b"),
      heldJob("a", 2),
      heldJob("a", 3),
    ];
    for (const held of [old, other, again, third]) settler.add(ended(held, outcome));
    const take = () =>
      (outcome === completed ? settler.takeCompletions(10) : settler.takeOthers(10)).map(
        ({ held }) => held,
      );
    expect([take(), take(), take(), take()]).toEqual([[old, other], [again], [third], []]);
  }
});

test("what ended before its job was stored waits for that", () => {
  const settler = new Settler();
  const [early, other] = [heldJob("a"), heldJob("b")];
  early.isStored = false;
  expect([settler.add(ended(early)), settler.add(ended(other))]).toEqual([false, true]);
  expect(settler.pending).toBe(1);
  expect(settler.takeCompletions(10).map(({ held }) => held)).toEqual([other]);
  settler.stored(early);
  expect(settler.takeCompletions(10).map(({ held }) => held)).toEqual([early]);
  expect(settler.pending).toBe(0);
});

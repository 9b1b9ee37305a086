import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { ClaimedJob } from "../../src/domain/job.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { HeldJobs } from "../../src/worker/held-jobs.ts";
import { Suspicion } from "../../src/worker/suspicion.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function stage(crashCount: number) {
  const held = new HeldJobs();
  const job = { id: "a", crashCount, token: { claimId: "c", claimNo: 1 } } as ClaimedJob;
  const [suspect] = held.add("c", "lease", [job]);
  if (suspect === undefined) throw new Error("it is not held");
  const shared: string[] = [];
  let told = () => {};
  const share = (claimId: string) => {
    shared.push(claimId);
    return new Promise<void>((resolve) => {
      told = resolve;
    });
  };
  const onChanged = vi.fn();
  const suspicion = new Suspicion({ share, onChanged, clock: systemClock });
  return { suspicion, suspect, held, shared, told: () => told(), onChanged };
}

test("a suspect begins at once, and alone until its lease says that others may have done it", async () => {
  const { suspicion, suspect, shared, told, onChanged } = stage(1);
  expect(suspicion.begins(suspect, 3)).toBe(true);
  expect([suspicion.isReserved, suspicion.isLong]).toEqual([true, false]);
  await vi.advanceTimersByTimeAsync(999);
  expect(shared).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  expect(shared).toEqual(["c"]);
  expect([suspicion.isReserved, onChanged.mock.calls.length]).toEqual([true, 0]);
  told();
  await vi.advanceTimersByTimeAsync(0);
  expect([suspicion.isReserved, onChanged.mock.calls.length]).toEqual([false, 1]);
});

test("one that has ended by then has no company", async () => {
  const { suspicion, suspect, held, shared, onChanged } = stage(1);
  suspicion.begins(suspect, 0);
  held.settled(suspect);
  expect(suspicion.isReserved).toBe(false);
  await vi.advanceTimersByTimeAsync(1_000);
  expect([shared, onChanged.mock.calls.length]).toEqual([[], 1]);
});

test("who was there twice waits for those that run, and is alone for longer", async () => {
  const { suspicion, suspect, shared } = stage(2);
  expect(suspicion.begins(suspect, 2)).toBe(false);
  expect([suspicion.isReserved, suspicion.isLong]).toEqual([true, true]);
  expect(suspicion.begins(suspect, 1)).toBe(false);
  expect(suspicion.begins(suspect, 0)).toBe(true);
  await vi.advanceTimersByTimeAsync(29_000);
  expect(shared).toEqual([]);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(shared).toEqual(["c"]);
});

test("it does not wait for them for ever", async () => {
  const { suspicion, suspect, onChanged } = stage(2);
  expect(suspicion.begins(suspect, 1)).toBe(false);
  await vi.advanceTimersByTimeAsync(30_001);
  expect(onChanged).toHaveBeenCalledOnce();
  expect(suspicion.begins(suspect, 1)).toBe(true);
});

test("another one comes when it has had its time", () => {
  const { suspicion, suspect, held } = stage(1);
  const token = { claimId: "d", claimNo: 1 };
  const [other] = held.add("d", "lease", [{ id: "b", crashCount: 1, token } as ClaimedJob]);
  if (other === undefined) throw new Error("it is not held");
  suspicion.begins(suspect, 0);
  expect(suspicion.begins(other, 1)).toBe(false);
  held.settled(suspect);
  expect(suspicion.begins(other, 0)).toBe(true);
});

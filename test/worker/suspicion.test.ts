import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { ClaimedJob } from "../../src/domain/job.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import type { LeaseMark } from "../../src/store/store.ts";
import { HeldJobs } from "../../src/worker/held-jobs.ts";
import { type Member, Suspicion } from "../../src/worker/suspicion.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A worker whose marks are stored when the test says so. */
class Colleague implements Member {
  runs = 0;
  readonly marks: LeaseMark[] = [];
  readonly changed = vi.fn();
  readonly held: HeldJobs;
  readonly #told: (() => void)[] = [];
  readonly #claimId: string;

  constructor(suspicion: Suspicion, claimId: string) {
    this.held = new HeldJobs((held) => suspicion.gone(held));
    this.#claimId = claimId;
    suspicion.join(this);
  }

  readonly running = () => this.runs;
  readonly holdsSuspect = () => this.held.holdsSuspect;
  readonly mark = (mark: LeaseMark) => {
    this.marks.push(mark);
    return new Promise<void>((told) => this.#told.push(told));
  };

  stored(): Promise<unknown> {
    for (const told of this.#told.splice(0)) told();
    return settle();
  }

  hold(crashCount: number) {
    const token = { claimId: this.#claimId, claimNo: 1 };
    const job = { id: this.#claimId, crashCount, token } as ClaimedJob;
    const [suspect] = this.held.add(this.#claimId, "lease", [job]);
    if (suspect === undefined) throw new Error("it is not held");
    return suspect;
  }
}

const settle = () => vi.advanceTimersByTimeAsync(0);

function stage(crashCount: number) {
  const suspicion = new Suspicion(systemClock);
  const worker = new Colleague(suspicion, "c");
  return { suspicion, worker, suspect: worker.hold(crashCount) };
}

test("a suspect begins at once, and alone until its lease says that others may have done it", async () => {
  const { suspicion, suspect, worker } = stage(1);
  worker.runs = 3;
  expect(suspicion.begins(suspect, worker)).toBe(true);
  expect([suspicion.isReserved, suspicion.isLong]).toEqual([true, false]);
  await vi.advanceTimersByTimeAsync(999);
  expect(worker.marks).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  expect(worker.marks).toEqual([{ shared: "c" }]);
  expect([suspicion.isReserved, worker.changed.mock.calls.length]).toEqual([true, 0]);
  await worker.stored();
  expect([suspicion.isReserved, worker.changed.mock.calls.length]).toEqual([false, 1]);
});

test("one that has ended by then has no company", async () => {
  const { suspicion, suspect, worker } = stage(1);
  suspicion.begins(suspect, worker);
  worker.held.settled(suspect);
  expect(suspicion.isReserved).toBe(false);
  await vi.advanceTimersByTimeAsync(1_000);
  expect([worker.marks, worker.changed.mock.calls.length]).toEqual([[], 1]);
});

test("who was there twice waits for those that run, and is alone for longer", async () => {
  const { suspicion, suspect, worker } = stage(2);
  worker.runs = 2;
  expect(suspicion.begins(suspect, worker)).toBe(false);
  expect([suspicion.isReserved, suspicion.isLong]).toEqual([true, true]);
  worker.runs = 1;
  expect(suspicion.begins(suspect, worker)).toBe(false);
  worker.runs = 0;
  expect(suspicion.begins(suspect, worker)).toBe(true);
  await vi.advanceTimersByTimeAsync(29_999);
  expect(worker.marks).toEqual([{ untimed: "c" }]);
  await vi.advanceTimersByTimeAsync(1);
  expect(worker.marks.at(-1)).toEqual({ shared: "c" });
});

test("it does not wait for them for ever, and has company then", async () => {
  const { suspicion, suspect, worker } = stage(2);
  worker.runs = 1;
  expect(suspicion.begins(suspect, worker)).toBe(false);
  await vi.advanceTimersByTimeAsync(30_001);
  expect(worker.changed).toHaveBeenCalledOnce();
  expect(suspicion.begins(suspect, worker)).toBe(true);
  await vi.advanceTimersByTimeAsync(1);
  expect(worker.marks).toEqual([{ untimed: "c" }, { shared: "c" }]);
});

test("another one comes when it has had its time", () => {
  const { suspicion, suspect, worker } = stage(1);
  const other = new Colleague(suspicion, "d").hold(1);
  suspicion.begins(suspect, worker);
  expect(suspicion.begins(other, worker)).toBe(false);
  worker.held.settled(suspect);
  suspicion.begins(other, worker);
  expect(suspicion.isReserved).toBe(true);
});

test("it begins when the leases of the other workers say that they are not to blame", async () => {
  const { suspicion, suspect, worker } = stage(1);
  const others = [new Colleague(suspicion, "d"), new Colleague(suspicion, "e")];
  expect(suspicion.begins(suspect, worker)).toBe(false);
  expect(others.map(({ marks }) => marks)).toEqual([[{ spared: true }], [{ spared: true }]]);
  await others[0]?.stored();
  expect(suspicion.begins(suspect, worker)).toBe(false);
  expect(worker.changed).not.toHaveBeenCalled();
  await others[1]?.stored();
  expect(worker.changed).toHaveBeenCalledOnce();
  expect(suspicion.begins(suspect, worker)).toBe(true);
});

test("they are to blame again before they run beside it, and when it has gone", async () => {
  const { suspicion, suspect, worker } = stage(1);
  const other = new Colleague(suspicion, "d");
  suspicion.begins(suspect, worker);
  await other.stored();
  suspicion.begins(suspect, worker);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(other.marks).toEqual([{ spared: true }, { spared: false }]);
  await worker.stored();
  expect(suspicion.isReserved).toBe(true);
  await other.stored();
  expect(suspicion.isReserved).toBe(false);
  worker.held.settled(suspect);

  const next = worker.hold(1);
  suspicion.begins(next, worker);
  worker.held.settled(next);
  expect(other.marks.slice(2)).toEqual([{ spared: true }, { spared: false }]);
});

test("the runs of all workers count, and one holds a suspect for all", () => {
  const { suspicion, suspect, worker } = stage(2);
  expect([suspicion.isHeld, suspicion.isHeldBesides(worker)]).toEqual([true, false]);
  worker.held.settled(suspect);
  expect(suspicion.isHeld).toBe(false);
  const other = new Colleague(suspicion, "d");
  const again = other.hold(2);
  expect([suspicion.isHeldBesides(worker), suspicion.isHeldBesides(other)]).toEqual([true, false]);
  worker.runs = 1;
  suspicion.leave(worker);
  expect(suspicion.begins(again, other)).toBe(true);
});

test("a suspect hears of runs that end at other workers", async () => {
  const { suspicion, suspect, worker } = stage(2);
  const other = new Colleague(suspicion, "d");
  other.runs = 1;
  suspicion.begins(suspect, worker);
  await other.stored();
  expect(suspicion.begins(suspect, worker)).toBe(false);
  worker.changed.mockClear();
  other.runs = 0;
  suspicion.ended(other);
  expect(worker.changed).toHaveBeenCalledOnce();
  expect(suspicion.begins(suspect, worker)).toBe(true);
});

test("whoever stops leaves nobody waiting", async () => {
  const { suspicion, suspect, worker } = stage(2);
  const other = new Colleague(suspicion, "d");
  suspicion.begins(suspect, worker);
  expect(suspicion.isReserved).toBe(true);
  suspicion.leave(worker);
  await settle();
  expect(suspicion.isReserved).toBe(false);
  expect(other.changed).toHaveBeenCalled();
});

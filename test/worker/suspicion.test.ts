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
  oldestMs = 0;
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
  readonly runsForMs = () => this.oldestMs;
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

/** It is asked for until it begins; all marks are stored at once. */
async function begin({ suspicion, suspect, worker }: ReturnType<typeof stage>) {
  if (suspicion.begins(suspect, worker)) throw new Error("its lease has told nothing");
  await worker.stored();
  expect(suspicion.begins(suspect, worker)).toBe(true);
}

test("a suspect begins when its lease says that it is alone, until that says that others may have done it", async () => {
  const { suspicion, suspect, worker } = stage(1);
  expect(suspicion.begins(suspect, worker)).toBe(false);
  expect([worker.marks, suspicion.isReserved]).toEqual([[{ alone: "c" }], true]);
  expect(suspicion.begins(suspect, worker)).toBe(false);
  expect(worker.changed).not.toHaveBeenCalled();
  await worker.stored();
  expect(worker.changed).toHaveBeenCalledOnce();
  expect(suspicion.begins(suspect, worker)).toBe(true);
  expect([suspicion.isReserved, suspicion.isLong]).toEqual([true, false]);
  await vi.advanceTimersByTimeAsync(999);
  expect(worker.marks).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(worker.marks.at(-1)).toEqual({ shared: "c" });
  expect([suspicion.isReserved, worker.changed.mock.calls.length]).toEqual([true, 1]);
  await worker.stored();
  expect([suspicion.isReserved, worker.changed.mock.calls.length]).toEqual([false, 2]);
});

test("it waits for those that run until the oldest has run for a second, and is alone when they have ended", async () => {
  const { suspicion, suspect, worker } = stage(1);
  worker.runs = 3;
  worker.oldestMs = 400;
  expect(suspicion.begins(suspect, worker)).toBe(false);
  await vi.advanceTimersByTimeAsync(599);
  expect(suspicion.begins(suspect, worker)).toBe(false);
  expect([worker.marks, suspicion.isReserved]).toEqual([[{ untimed: "c" }], true]);
  worker.runs = 0;
  expect(suspicion.begins(suspect, worker)).toBe(false);
  expect(worker.marks.at(-1)).toEqual({ alone: "c" });
});

test("where they run on it begins all the same, and has company after a second", async () => {
  const { suspicion, suspect, worker } = stage(1);
  worker.runs = 3;
  worker.oldestMs = 400;
  suspicion.begins(suspect, worker);
  await vi.advanceTimersByTimeAsync(601);
  expect(worker.changed).toHaveBeenCalledOnce();
  await begin({ suspicion, suspect, worker });
  expect(worker.marks).toEqual([{ untimed: "c" }, { alone: "c" }]);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(worker.marks.at(-1)).toEqual({ shared: "c" });
});

test("it does not wait for those that have run for long already", async () => {
  const staged = stage(1);
  staged.worker.runs = 3;
  staged.worker.oldestMs = 1_000;
  await begin(staged);
  expect(staged.worker.marks).toEqual([{ alone: "c" }]);
});

test("one that has ended by then has no company", async () => {
  const { suspicion, suspect, worker } = stage(1);
  await begin({ suspicion, suspect, worker });
  worker.held.settled(suspect);
  expect(suspicion.isReserved).toBe(false);
  await vi.advanceTimersByTimeAsync(1_000);
  expect([worker.marks, worker.changed.mock.calls.length]).toEqual([[{ alone: "c" }], 2]);
});

test("who was there twice waits for those that run, and is alone for longer", async () => {
  const { suspicion, suspect, worker } = stage(2);
  worker.runs = 2;
  worker.oldestMs = 5_000;
  expect(suspicion.begins(suspect, worker)).toBe(false);
  expect([suspicion.isReserved, suspicion.isLong]).toEqual([true, true]);
  worker.runs = 1;
  expect(suspicion.begins(suspect, worker)).toBe(false);
  worker.runs = 0;
  await begin({ suspicion, suspect, worker });
  await vi.advanceTimersByTimeAsync(29_999);
  expect(worker.marks).toEqual([{ untimed: "c" }, { alone: "c" }]);
  await vi.advanceTimersByTimeAsync(1);
  expect(worker.marks.at(-1)).toEqual({ shared: "c" });
});

test("it does not wait for them for ever, and has company then", async () => {
  const { suspicion, suspect, worker } = stage(2);
  worker.runs = 1;
  expect(suspicion.begins(suspect, worker)).toBe(false);
  await vi.advanceTimersByTimeAsync(30_001);
  expect(worker.changed).toHaveBeenCalledOnce();
  await begin({ suspicion, suspect, worker });
  expect(worker.marks).toEqual([{ untimed: "c" }, { shared: "c" }]);
  expect(suspicion.isReserved).toBe(false);
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
  await worker.stored();
  await others[0]?.stored();
  expect(suspicion.begins(suspect, worker)).toBe(false);
  expect(worker.changed).not.toHaveBeenCalled();
  await others[1]?.stored();
  expect(worker.changed).toHaveBeenCalledOnce();
  expect(suspicion.begins(suspect, worker)).toBe(true);
});

test("they are to blame while it waits for them", async () => {
  const { suspicion, suspect, worker } = stage(2);
  const other = new Colleague(suspicion, "d");
  other.runs = 1;
  suspicion.begins(suspect, worker);
  expect(other.marks).toEqual([]);
  other.runs = 0;
  suspicion.begins(suspect, worker);
  expect(other.marks).toEqual([{ spared: true }]);
});

test("they are to blame again before they run beside it, and before they run when it has gone", async () => {
  const { suspicion, suspect, worker } = stage(1);
  const other = new Colleague(suspicion, "d");
  suspicion.begins(suspect, worker);
  await other.stored();
  await begin({ suspicion, suspect, worker });
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
  expect(suspicion.isReserved).toBe(true);
  await other.stored();
  expect(suspicion.isReserved).toBe(false);
});

test("the runs of all workers count, and one holds a suspect for all", async () => {
  const { suspicion, suspect, worker } = stage(2);
  expect([suspicion.isHeld, suspicion.isHeldBesides(worker)]).toEqual([true, false]);
  worker.held.settled(suspect);
  expect(suspicion.isHeld).toBe(false);
  const other = new Colleague(suspicion, "d");
  const again = other.hold(2);
  expect([suspicion.isHeldBesides(worker), suspicion.isHeldBesides(other)]).toEqual([true, false]);
  worker.runs = 1;
  expect(suspicion.begins(again, other)).toBe(false);
  expect(other.marks).toEqual([{ untimed: "d" }]);
  suspicion.leave(worker);
  await begin({ suspicion, suspect: again, worker: other });
});

test("a suspect hears of runs that end at other workers", async () => {
  const { suspicion, suspect, worker } = stage(2);
  const other = new Colleague(suspicion, "d");
  other.runs = 1;
  expect(suspicion.begins(suspect, worker)).toBe(false);
  other.runs = 0;
  suspicion.ended(other);
  expect(worker.changed).toHaveBeenCalledOnce();
  suspicion.begins(suspect, worker);
  await other.stored();
  await begin({ suspicion, suspect, worker });
});

test("whoever stops leaves nobody waiting", async () => {
  const { suspicion, suspect, worker } = stage(2);
  const other = new Colleague(suspicion, "d");
  suspicion.begins(suspect, worker);
  expect(suspicion.isReserved).toBe(true);
  suspicion.leave(worker);
  await other.stored();
  expect(suspicion.isReserved).toBe(false);
  expect(other.changed).toHaveBeenCalled();
});

import { describe, expect, it } from "vitest";
import { aheadOf, handedTo, RunTimes, roomFor, roomUnasked } from "../../src/worker/room.ts";

function slowestAfter(...runs: readonly (readonly [type: string, ms: number])[]): number {
  const times = new RunTimes();
  for (const [type, ms] of runs) times.note(type, ms);
  return times.slowestMs;
}

describe("how far ahead a worker fetches", () => {
  it("is not at all before anything is known of its runs", () => {
    expect(aheadOf(20, slowestAfter())).toBe(0);
    expect(roomFor(20, slowestAfter(), 0)).toBe(20);
  });

  it("is far for quick handlers, and not at all for slow ones", () => {
    expect(aheadOf(20, slowestAfter(["otp", 0.1]))).toBe(1_000);
    expect(aheadOf(20, slowestAfter(["report", 20]))).toBe(0);
  });

  it("goes by the slowest type, however many quick runs came since", () => {
    const quick = Array.from({ length: 1_000 }, () => ["otp", 0.1] as const);
    expect(aheadOf(20, slowestAfter(["report", 20], ...quick))).toBe(0);
    expect(aheadOf(20, slowestAfter(...quick, ["report", 20], ...quick))).toBe(0);
  });

  it("grows again when the slow type has become quick", () => {
    const quick = Array.from({ length: 200 }, () => ["report", 0.1] as const);
    const slowest = slowestAfter(["otp", 0.1], ["report", 20], ...quick);
    expect(slowest).toBeLessThan(0.2);
    expect(aheadOf(20, slowest)).toBe(1_000);
  });

  it("is farther for what others hand over, as long as it takes a moment only", () => {
    expect(handedTo(200, slowestAfter(["otp", 0.1]))).toEqual({ atOnce: 1_000, most: 4_200 });
    expect(handedTo(10, slowestAfter(["mail", 5]))).toEqual({ atOnce: 30, most: 30 });
    expect(handedTo(10, slowestAfter(["report", 20]))).toEqual({ atOnce: 10, most: 10 });
  });

  it("bears twice as much when several hand over at once, unless runs are slow", () => {
    expect(roomUnasked(10, slowestAfter(["mail", 5]), 25)).toBe(35);
    expect(roomUnasked(10, slowestAfter(["mail", 5]), 70)).toBe(0);
    expect(roomUnasked(10, slowestAfter(["report", 20]), 7)).toBe(3);
  });

  it("knows a bounded number of types", () => {
    const many = Array.from({ length: 5_000 }, (_, i) => [`type ${i}`, 5] as const);
    expect(slowestAfter(...many)).toBe(5);
  });
});

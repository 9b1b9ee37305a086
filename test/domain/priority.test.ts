import { describe, expect, it } from "vitest";
import { checkPriorities, defaultPriorities, weightOf } from "../../src/domain/priority.ts";

describe("priorities", () => {
  it("run high before normal before low, and normal is the default", () => {
    const weights = ["high", undefined, "low"].map((label) => weightOf(label, defaultPriorities));
    expect(weights).toEqual([0, 5, 10]);
    expect(weightOf("normal", defaultPriorities)).toBe(5);
  });

  it("refuse an unknown label, also one that every object has", () => {
    for (const label of ["urgent", "", "toString", "__proto__"]) {
      expect(() => weightOf(label, defaultPriorities)).toThrow(
        expect.objectContaining({ code: "UNKNOWN_PRIORITY" }),
      );
    }
  });

  it("may be anybody's own, as whole numbers from -100 to 100 with a normal among them", () => {
    const own = checkPriorities({ now: -100, normal: 0, idle: 100 });
    expect(weightOf("now", own)).toBe(-100);
    expect(Object.isFrozen(own)).toBe(true);
    for (const bad of [{ normal: 1.5 }, { normal: 101 }, { normal: Number.NaN }, { high: 0 }]) {
      expect(() => checkPriorities(bad as Record<string, number>)).toThrow(
        expect.objectContaining({ code: "OPTION_INVALID" }),
      );
    }
  });
});

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  appendEntry,
  entryFor,
  errorFields,
  type RunOutcome,
  type Timeline,
  type TimelineEntry,
} from "../../src/domain/timeline.ts";

const entry = (n: number, outcome: RunOutcome = "retried", message?: string): TimelineEntry => ({
  token: `claim/${n}`,
  attempt: n,
  worker: "w",
  startedAt: `2026-01-01T00:00:${String(n % 60).padStart(2, "0")}.000Z`,
  endedAt: `2026-01-01T00:01:${String(n % 60).padStart(2, "0")}.000Z`,
  outcome,
  ...(message === undefined ? {} : { message }),
});
const append = (entries: readonly TimelineEntry[]) =>
  entries.reduce<Timeline>((timeline, next) => appendEntry(timeline, next), []);
const attempts = (timeline: Timeline) => timeline.map(({ attempt }) => attempt);
const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);

describe("a timeline", () => {
  it("keeps the first three entries and the last twenty", () => {
    expect(attempts(append(range(0, 23).map((n) => entry(n))))).toEqual(range(0, 23));
    expect(attempts(append(range(0, 60).map((n) => entry(n))))).toEqual([
      0,
      1,
      2,
      ...range(40, 60),
    ]);
  });

  it("stays within 8 KB, counted in bytes, and keeps the newest entry whole", () => {
    const outcome = fc.constantFrom<RunOutcome>("retried", "released", "lapsed", "snoozed", "dead");
    const message = fc.constantFrom(
      "x".repeat(500),
      "é".repeat(250),
      "字".repeat(166),
      "😀".repeat(125),
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(outcome, message), { minLength: 1, maxLength: 60 }), (list) => {
        const timeline = append(list.map(([o, m], n) => entry(n, o, m)));
        expect(Buffer.byteLength(JSON.stringify(timeline))).toBeLessThanOrEqual(8_192);
        expect(timeline.length).toBeLessThanOrEqual(23);
        expect(timeline.at(-1)).toMatchObject({ token: `claim/${list.length - 1}` });
        expect(attempts(timeline)).toEqual([...attempts(timeline)].sort((a, b) => a - b));
      }),
      { numRuns: 40 },
    );
  });

  it("drops from the middle when it is too long, not the beginning", () => {
    const kept = attempts(append(range(0, 23).map((n) => entry(n, "retried", "字".repeat(166)))));
    expect(kept.slice(0, 3)).toEqual([0, 1, 2]);
    expect(kept.at(-1)).toBe(22);
  });

  it("merges snoozes in a row into one entry that counts them", () => {
    const timeline = append([
      entry(1, "retried"),
      entry(2, "snoozed"),
      entry(3, "snoozed"),
      entry(4, "snoozed"),
      entry(5, "retried"),
      entry(6, "snoozed"),
    ]);
    expect(timeline).toMatchObject([
      { attempt: 1 },
      { attempt: 4, times: 3, startedAt: entry(2).startedAt, endedAt: entry(4).endedAt },
      { attempt: 5 },
      { attempt: 6 },
    ]);
    expect(timeline[3]).not.toHaveProperty("times");
  });

  it("does not change the timeline it was given", () => {
    const before = Object.freeze([entry(1, "snoozed")]);
    appendEntry(before, entry(2, "snoozed"));
    expect(before).toEqual([entry(1, "snoozed")]);
  });

  it("finds the entry of a token", () => {
    const timeline = append([entry(1), entry(2)]);
    expect(entryFor(timeline, { claimId: "claim", claimNo: 2 })).toEqual(entry(2));
    expect(entryFor(timeline, { claimId: "claim", claimNo: 3 })).toBeUndefined();
    expect(entryFor(timeline, { claimId: "other", claimNo: 2 })).toBeUndefined();
  });

  it("takes class, fingerprint and message of an error, and not its stack", () => {
    const error = { class: "transient", fingerprint: "f", message: "m", stack: "s" } as const;
    expect(errorFields(error)).toEqual({ errorClass: "transient", fingerprint: "f", message: "m" });
    expect(errorFields(undefined)).toEqual({});
  });
});

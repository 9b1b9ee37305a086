import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  NonRetryableError,
  RateLimitedError,
  RetryableError,
  Snooze,
} from "../../src/domain/error-class.ts";
import {
  failuresSoFar,
  lapseCharges,
  outcomeOfFailure,
  outcomeOfLapse,
} from "../../src/domain/outcome.ts";
import { defaultRetryPolicy } from "../../src/domain/retry-policy.ts";

const run = { type: "t", attempt: 1, maxAttempts: 3, crashCount: 0 };
const context = { policy: defaultRetryPolicy, random: 0.5 };

describe("a failed run", () => {
  it("is retried by the delay of its class while attempts are left", () => {
    expect(outcomeOfFailure(run, new Error("x"), context)).toMatchObject({
      kind: "retried",
      delayMs: 2_000,
      error: { class: "retryable", message: "x" },
    });
    const reset = Object.assign(new Error("reset"), { code: "ECONNRESET" });
    expect(outcomeOfFailure({ ...run, attempt: 2 }, reset, context)).toMatchObject({
      delayMs: 4_000,
      error: { class: "transient" },
    });
    expect(outcomeOfFailure(run, new RateLimitedError("slow"), context)).toMatchObject({
      delayMs: 60_000,
      error: { class: "rate_limited" },
    });
    const wish = new RetryableError("later", { retryAfterMs: 7_000 });
    expect(outcomeOfFailure(run, wish, context)).toMatchObject({ delayMs: 7_000 });
  });

  it("is dead when its attempts are spent, and at once when it is not retryable", () => {
    const last = { ...run, attempt: 3 };
    expect(outcomeOfFailure(last, new Error("x"), context)).toMatchObject({ kind: "dead" });
    expect(outcomeOfFailure(run, new NonRetryableError("no"), context)).toMatchObject({
      kind: "dead",
      error: { class: "non_retryable" },
    });
  });

  it("asks the job's own classifier first", () => {
    const classifier = () => "non_retryable" as const;
    const error = new RetryableError("x");
    expect(outcomeOfFailure(run, error, { ...context, classifier })).toMatchObject({
      kind: "dead",
    });
    const silent = { ...context, classifier: () => undefined };
    expect(outcomeOfFailure(run, error, silent)).toMatchObject({ kind: "retried" });
  });

  it("does not spend its attempts on crashes", () => {
    expect(failuresSoFar({ ...run, attempt: 3, crashCount: 2 })).toBe(1);
    const afterTwoCrashes = { ...run, attempt: 3, crashCount: 2 };
    expect(outcomeOfFailure(afterTwoCrashes, new Error("x"), context)).toMatchObject({
      kind: "retried",
      delayMs: 2_000,
    });
  });
});

describe("a snooze", () => {
  it("waits as long as it asked, whatever the attempts", () => {
    const snoozed = outcomeOfFailure({ ...run, attempt: 3 }, new Snooze(5_000, "open"), context);
    expect(snoozed).toEqual({ kind: "snoozed", delayMs: 5_000, reason: "open" });
  });

  it("has a reason that PostgreSQL can store, of at most 200 bytes", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 400 }), (text) => {
        const snoozed = outcomeOfFailure(run, new Snooze(1, `\u0000\uD800${text}`), context);
        const reason = snoozed.kind === "snoozed" ? snoozed.reason : "";
        expect(reason.isWellFormed()).toBe(true);
        expect(reason).not.toContain("\u0000");
        expect(Buffer.byteLength(reason)).toBeLessThanOrEqual(200);
      }),
    );
  });
});

describe("a delay", () => {
  it("is always a whole, finite number of milliseconds, whatever a handler or policy said", () => {
    fc.assert(
      fc.property(fc.double(), (ms) => {
        const policy = () => ms;
        for (const thrown of [new Snooze(ms), new Error("x")]) {
          const outcome = outcomeOfFailure(run, thrown, { policy, random: 0 });
          const delay = "delayMs" in outcome ? outcome.delayMs : -1;
          expect(Number.isSafeInteger(delay)).toBe(true);
          expect(delay).toBeGreaterThanOrEqual(0);
        }
      }),
    );
    const never = outcomeOfFailure(run, new Snooze(Number.POSITIVE_INFINITY), context);
    expect(never).toMatchObject({ delayMs: 10 * 365 * 86_400_000 });
  });
});

describe("a lapsed lease", () => {
  const held = (...crashCounts: number[]) => crashCounts.map((crashCount) => ({ crashCount }));

  it("charges every job when none was suspect, and otherwise the suspects only", () => {
    expect(lapseCharges(held(0, 0, 0))).toEqual(["charged", "charged", "charged"]);
    expect(lapseCharges(held(0, 1, 0))).toEqual(["spared", "charged", "spared"]);
    expect(lapseCharges(held())).toEqual([]);
  });

  it("never spares everybody", () => {
    const some = fc.array(fc.integer({ min: 0, max: 2 }), { minLength: 1 });
    fc.assert(
      fc.property(some, (counts) => {
        expect(lapseCharges(held(...counts))).toContain("charged");
      }),
    );
  });

  it("brings a charged job back at once, twice, and makes it a dead letter the third time", () => {
    expect(outcomeOfLapse(run, "charged")).toMatchObject({ kind: "retried", delayMs: 0 });
    expect(outcomeOfLapse({ ...run, crashCount: 1 }, "charged").kind).toBe("retried");
    const third = outcomeOfLapse({ ...run, crashCount: 2 }, "charged");
    expect(third).toMatchObject({ kind: "dead", error: { message: expect.stringMatching("3") } });
    expect(third).not.toHaveProperty("error.stack");
  });

  it("releases a spared job", () => {
    expect(outcomeOfLapse({ ...run, crashCount: 0 }, "spared")).toEqual({ kind: "released" });
  });

  it("does not use up the attempts: the last attempt's crash is retried too", () => {
    expect(outcomeOfLapse({ ...run, attempt: 3 }, "charged").kind).toBe("retried");
  });
});

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BreakerOpenError, breakerNamedIn } from "../../src/domain/circuit-breaker.ts";
import {
  type Classifier,
  classify,
  JobFailure,
  NonRetryableError,
  RateLimitedError,
  RetryableError,
  Snooze,
} from "../../src/domain/error-class.ts";
import {
  failuresSoFar,
  lapseCharges,
  mostFreeProbes,
  outcomeOfFailure,
  outcomeOfLapse,
  type SuspectRun,
} from "../../src/domain/outcome.ts";
import { defaultRetryPolicy, type RetryPolicy } from "../../src/domain/retry-policy.ts";

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

  it("spends nothing as a probe of a breaker, so many times, and never when it is not retryable", () => {
    const failedProbe = new BreakerOpenError("p", { retryAfterMs: 30_000, spreadMs: 10_000 });
    const rules = { ...context, failedProbe };
    const last = { ...run, attempt: 3 };
    const probed = outcomeOfFailure(last, new Error("503"), rules);
    expect(probed).toMatchObject({ kind: "snoozed", delayMs: 35_000, probed: true });
    expect(breakerNamedIn(probed.kind === "snoozed" ? probed.reason : "")).toBe("p");
    const slow = new RateLimitedError("slow", { retryAfterMs: 200_000 });
    expect(outcomeOfFailure(last, slow, rules)).toMatchObject({ delayMs: 200_000 });
    expect(outcomeOfFailure(run, new NonRetryableError("no"), rules).kind).toBe("dead");
    const entry = {
      ...{ token: "c/1", attempt: 3, worker: "w", startedAt: "", endedAt: "" },
      ...{ outcome: "snoozed" as const, times: 200 },
    };
    const kindAfter = (probes: number, attempt: number) =>
      outcomeOfFailure(
        {
          ...run,
          attempt,
          timeline: [
            { ...entry, outcome: "retried", probes: 9 },
            { ...entry, probes },
          ],
        },
        new Error("503"),
        rules,
      ).kind;
    expect(kindAfter(mostFreeProbes - 1, 3)).toBe("snoozed");
    expect([kindAfter(mostFreeProbes, 2), kindAfter(mostFreeProbes, 3)]).toEqual([
      "retried",
      "dead",
    ]);
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

const nonsense = [undefined, null, "5 minutes", 5n, Number.NaN, -1, {}, [], () => 5, Symbol("5")];

describe("a delay", () => {
  it("is always a whole, finite number of milliseconds, whatever a policy said", () => {
    fc.assert(
      fc.property(fc.oneof(fc.double(), fc.anything()), (answer) => {
        const policy = (() => answer) as unknown as RetryPolicy;
        const outcome = outcomeOfFailure(run, new Error("x"), { policy, random: 0 });
        const delay = "delayMs" in outcome ? outcome.delayMs : -1;
        expect(Number.isSafeInteger(delay)).toBe(true);
        expect(delay).toBeGreaterThanOrEqual(0);
      }),
    );
    const late = { policy: () => Number.MAX_VALUE, random: 0 };
    expect(outcomeOfFailure(run, new Error("x"), late)).toMatchObject({
      delayMs: 10 * 365 * 86_400_000,
    });
  });

  it("is the default policy's where a policy answers with no finite number, and somebody hears of it", () => {
    const broken = [undefined, "5 minutes", 5n, Promise.reject(new Error("async"))];
    const endless = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    for (const answer of [...broken, ...endless]) {
      const faults: unknown[] = [];
      const outcome = outcomeOfFailure(run, new RateLimitedError("slow"), {
        policy: (() => answer) as unknown as RetryPolicy,
        random: 0.5,
        onFault: (fault) => faults.push(fault),
      });
      expect(outcome).toMatchObject({ kind: "retried", delayMs: 60_000 });
      expect(faults).toMatchObject([{ code: "OPTION_INVALID" }]);
    }
  });

  it("cannot be nonsense in a snooze: the constructor refuses it", () => {
    for (const ms of [...nonsense, Number.POSITIVE_INFINITY]) {
      expect(() => new Snooze(ms as number)).toThrowError(
        expect.objectContaining({ code: "OPTION_INVALID" }),
      );
    }
    expect(new Snooze(0).delayMs).toBe(0);
    const forged = Object.assign(new Snooze(1), { delayMs: 5n });
    expect(outcomeOfFailure(run, forged, context)).toMatchObject({ kind: "snoozed", delayMs: 0 });
  });

  it("is the class's own where what the platform wished is no number", () => {
    for (const retryAfterMs of nonsense as number[]) {
      const thrown = new RateLimitedError("slow", { retryAfterMs });
      expect(thrown.retryAfterMs).toBeUndefined();
      expect(outcomeOfFailure(run, thrown, context)).toMatchObject({ delayMs: 60_000 });
      const classifier: Classifier = () => ({ class: "rate_limited", retryAfterMs });
      const told = { ...context, classifier };
      expect(outcomeOfFailure(run, new Error("x"), told)).toMatchObject({ delayMs: 60_000 });
    }
  });
});

describe("a classifier", () => {
  const answers = [5, null, "often", {}, { class: "often" }, { class: 5 }, async () => {}];

  it("counts as failed when it answers with no class", () => {
    const rejected = () => Promise.reject(new Error("an async classifier"));
    for (const answer of [...answers, Promise.resolve("transient"), rejected()]) {
      const classifier = (() => answer) as unknown as Classifier;
      expect(() => classify(new Error("x"), classifier)).toThrowError(
        expect.objectContaining({ code: "OPTION_INVALID" }),
      );
      const faults: unknown[] = [];
      const own = { ...context, classifier, onFault: (fault: unknown) => faults.push(fault) };
      expect(outcomeOfFailure(run, new RetryableError("x"), own)).toMatchObject({
        kind: "retried",
        delayMs: 2_000,
        error: { class: "retryable" },
      });
      expect(faults).toHaveLength(1);
    }
  });

  it("may be told with null for its options", () => {
    const failure = new RateLimitedError("slow down", null as never);
    expect(failure).toMatchObject({ class: "rate_limited", message: "slow down" });
    expect(failure.cause).toBeUndefined();
  });

  it("is not needed for a failure of a class that there is not", () => {
    const odd = new JobFailure("often" as "transient", "x");
    expect(outcomeOfFailure(run, odd, context)).toMatchObject({ error: { class: "retryable" } });
  });
});

describe("a lapsed lease", () => {
  const runs = (ran: SuspectRun, ...crashCounts: number[]) =>
    crashCounts.map((crashCount) => ({ crashCount, ran, spared: false }));

  it("charges every job when none was suspect, and the suspect only when it ran alone", () => {
    expect(lapseCharges(runs("not_yet", 0, 0, 0))).toEqual(["charged", "charged", "charged"]);
    expect(lapseCharges(runs("alone", 0, 0))).toEqual(["charged", "charged"]);
    expect(lapseCharges(runs("alone", 0, 1, 0))).toEqual(["spared", "charged", "spared"]);
    expect(lapseCharges([])).toEqual([]);
  });

  it("charges every job when a suspect had company, and not for a neighbour's claim", () => {
    expect(lapseCharges(runs("shared", 0, 1))).toEqual(["charged", "charged"]);
    const [fresh, suspect] = [runs("shared", 0), runs("alone", 1)];
    expect(lapseCharges([...fresh, ...suspect])).toEqual(["spared", "charged"]);
  });

  it("does not charge a suspect that had not begun, and those that ran before it", () => {
    expect(lapseCharges(runs("not_yet", 0, 2, 0))).toEqual(["charged", "spared", "charged"]);
    const [waiting, suspect] = [runs("not_yet", 2, 0), runs("alone", 1)];
    expect(lapseCharges([...waiting, ...suspect])).toEqual(["spared", "spared", "charged"]);
  });

  it("charges nobody when a suspect of another worker was alone in the process", () => {
    const besides = runs("alone", 0, 1, 0).map((one) => ({ ...one, spared: true }));
    expect(lapseCharges(besides)).toEqual(["spared", "spared", "spared"]);
  });

  it("never spares everybody otherwise, if anybody had begun", () => {
    const crashCount = fc.integer({ min: 0, max: 2 });
    const ran = fc.constantFrom<SuspectRun>("alone", "shared", "not_yet");
    const one = fc.record({ crashCount, ran, spared: fc.constant(false) });
    fc.assert(
      fc.property(fc.array(one, { minLength: 1 }), (some) => {
        const begun = some.some((run) => run.crashCount === 0 || run.ran !== "not_yet");
        expect(lapseCharges(some).includes("charged")).toBe(begun);
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

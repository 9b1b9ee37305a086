import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  admit,
  BreakerOpenError,
  type BreakerSettings,
  type BreakerState,
  breakerTransitions,
  type CircuitBreaker,
  changeByHand,
  emptyTally,
  joinTallies,
  newBreaker,
  type Pass,
  report,
  reportProbe,
  returnDelayMs,
  tallyOf,
  type Verdict,
  verdictOf,
} from "../../src/domain/circuit-breaker.ts";
import {
  type Classifier,
  NonRetryableError,
  RateLimitedError,
  RetryableError,
  Snooze,
} from "../../src/domain/error-class.ts";

const settings: BreakerSettings = {
  failureThreshold: 3,
  openCooldownSeconds: 30,
  halfOpenProbeCount: 2,
  probeTimeoutSeconds: 60,
  returnSpreadSeconds: null,
};

const verdict = fc.constantFrom<Verdict>("success", "failure", "failure", "none");
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("call" as const) }) },
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant("end" as const), which: fc.nat(9), verdict }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("wait" as const),
      ms: fc.constantFrom(1, 10_000, 29_999, 30_000, 60_000),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("byHand" as const),
      action: fc.constantFrom("open" as const, "close" as const, "reset" as const),
    }),
  },
);
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

/** The rules once more, kept as plainly as they are told: a row for each state and thing that happens. */
class Model {
  now = 0;
  state: BreakerState = "CLOSED";
  inARow = 0;
  openUntil: number | null = null;
  era = {};
  out: { pass: Pass; era: object; until: number }[] = [];

  enter(state: BreakerState, openUntil: number | null = null) {
    this.state = state;
    this.inARow = 0;
    this.openUntil = openUntil;
    this.era = {};
  }

  get live() {
    return this.out.filter(({ era, until }) => era === this.era && until > this.now).length;
  }

  /** Probes past their time have nothing to say any more once another was granted. */
  forgetLost() {
    for (const one of this.out) if (one.until <= this.now) one.era = {};
  }

  /** Whether a call passes now, and which transition that is. */
  call(): { passes: boolean; by?: keyof typeof breakerTransitions } {
    if (this.state === "CLOSED") return { passes: true };
    if (this.state === "HALF_OPEN") return { passes: this.live < settings.halfOpenProbeCount };
    const passes = this.openUntil !== null && this.now >= this.openUntil;
    return passes ? { passes, by: "probe" } : { passes };
  }

  /** The transition that this end of a call leads to. */
  end(era: object, said: Verdict): keyof typeof breakerTransitions | undefined {
    if (era !== this.era || said === "none") return undefined;
    if (this.state === "HALF_OPEN") return said === "success" ? "recover" : "relapse";
    this.inARow = said === "success" ? 0 : this.inARow + 1;
    return this.inARow >= settings.failureThreshold ? "trip" : undefined;
  }

  follow(by: keyof typeof breakerTransitions) {
    const { from, to } = breakerTransitions[by];
    expect(from as readonly string[]).toContain(this.state);
    const cools = by === "trip" || by === "relapse";
    this.enter(to, cools ? this.now + settings.openCooldownSeconds * 1_000 : null);
  }
}

function play(steps: readonly Step[]) {
  let breaker: CircuitBreaker = newBreaker;
  const model = new Model();
  let probes = 0;
  for (const one of steps) {
    if (one.do === "wait") model.now += one.ms;
    else if (one.do === "byHand") {
      breaker = changeByHand(breaker, one.action);
      model.follow(one.action);
    } else if (one.do === "call") {
      const expected = model.call();
      const admission = admit(breaker, settings, model.now, `p${++probes}`);
      expect(admission.kind).toBe(expected.passes ? "passed" : "refused");
      if (expected.by !== undefined) model.follow(expected.by);
      if (admission.kind === "refused") expect(admission.retryAfterMs).toBeGreaterThan(0);
      else {
        breaker = admission.breaker;
        const isProbe = model.state === "HALF_OPEN";
        if (isProbe) model.forgetLost();
        expect(admission.pass.probe !== null).toBe(isProbe);
        const until = isProbe ? model.now + settings.probeTimeoutSeconds * 1_000 : 0;
        model.out.push({ pass: admission.pass, era: model.era, until });
      }
    } else if (model.out.length > 0) {
      const [call] = model.out.splice(one.which % model.out.length, 1);
      if (call === undefined) throw new Error("no call");
      const { pass } = call;
      const by = model.end(call.era, one.verdict);
      breaker = endCall(breaker, pass, one.verdict, model.now);
      if (by !== undefined) model.follow(by);
    }
    expect(breaker.state).toBe(model.state);
    if (breaker.state === "CLOSED") expect(breaker.failures).toBe(model.inARow);
    const live = breaker.probes.filter(({ untilMs }) => untilMs > model.now).length;
    expect(live).toBeLessThanOrEqual(settings.halfOpenProbeCount);
    expect(live).toBe(model.state === "HALF_OPEN" ? model.live : 0);
  }
  return breaker;
}

const endCall = (breaker: CircuitBreaker, pass: Pass, said: Verdict, now: number) => {
  if (pass.probe !== null) return reportProbe(breaker, settings, now, { ...pass, verdict: said });
  if (said === "none") return breaker;
  return report(breaker, settings, now, { period: pass.period, tally: tallyOf(said) });
};

describe("a circuit breaker", () => {
  it("follows its transition table, whatever happens under a virtual clock", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => void play(steps)),
      { numRuns: 1_500 },
    );
  });

  it("opens with the last of so many failures in a row, and a success begins the row anew", () => {
    const call = { do: "call" } as const;
    const end = (said: Verdict) => ({ do: "end", which: 0, verdict: said }) as const;
    const ended = (...said: Verdict[]) => play(said.flatMap((one) => [call, end(one)]));
    expect(ended("failure", "failure").state).toBe("CLOSED");
    expect(ended("failure", "failure", "failure").state).toBe("OPEN");
    expect(ended("failure", "failure", "success", "failure", "failure").state).toBe("CLOSED");
    expect(ended("failure", "none", "failure", "none", "failure").state).toBe("OPEN");
  });

  it("takes a tally of reports for the reports themselves", () => {
    const said = fc.array(fc.constantFrom("success" as const, "failure" as const), {
      maxLength: 12,
    });
    const failures = fc.nat(settings.failureThreshold - 1);
    fc.assert(
      fc.property(fc.array(said, { maxLength: 4 }), failures, (batches, before) => {
        const start = { ...newBreaker, failures: before };
        const tallies = batches.map((one) => one.map(tallyOf).reduce(joinTallies, emptyTally));
        const tally = tallies.reduce(joinTallies, emptyTally);
        const together = report(start, settings, 0, { period: 1, tally });
        const apart = batches
          .flat()
          .reduce<CircuitBreaker>(
            (breaker, one) => report(breaker, settings, 0, { period: 1, tally: tallyOf(one) }),
            start,
          );
        // How long the row was that opened it is told more fully by a tally.
        const { failures: longest, ...rest } = together;
        const { failures: last, ...others } = apart;
        expect(rest).toEqual(others);
        if (together.state === "CLOSED") expect(longest).toBe(last);
      }),
      { numRuns: 2_000 },
    );
  });

  it("lets a probe be asked for again by its own id, and by no other", () => {
    const open = { ...newBreaker, state: "OPEN" as const, retryAtMs: 0 };
    const one = { ...settings, halfOpenProbeCount: 1 };
    const first = admit(open, one, 0, "mine");
    if (first.kind === "refused") throw new Error("refused");
    expect(admit(first.breaker, one, 1, "mine").kind).toBe("passed");
    expect(admit(first.breaker, one, 1, "other").kind).toBe("refused");
    expect(admit(first.breaker, one, 60_000, "other").kind).toBe("passed");
  });
});

describe("an error", () => {
  it("speaks against the platform, for it, or not about it", () => {
    expect(verdictOf(new Error("x"))).toBe("failure");
    expect(verdictOf("just a text")).toBe("failure");
    expect(verdictOf(new RetryableError("x"))).toBe("failure");
    expect(verdictOf(new RateLimitedError("x"))).toBe("failure");
    expect(verdictOf(Object.assign(new Error("x"), { code: "ECONNRESET" }))).toBe("failure");
    expect(verdictOf(new NonRetryableError("no such card"))).toBe("success");
    expect(verdictOf(new Snooze(1))).toBe("none");
    expect(verdictOf(new BreakerOpenError("b", { retryAfterMs: 1, spreadMs: 0 }))).toBe("none");
    expect(verdictOf(new Error("404"), () => "non_retryable")).toBe("success");
    const broken = () => {
      throw new Error("the classifier itself");
    };
    expect(verdictOf(new Error("x"), broken)).toBe("failure");
    const late = (async () => {
      throw new Error("the classifier itself, later");
    }) as unknown as Classifier;
    expect(verdictOf(new NonRetryableError("no such card"), late)).toBe("success");
  });
});

describe("a refusal", () => {
  it("says when to come back, and spreads those who do", () => {
    const refusal = new BreakerOpenError("stripe", { retryAfterMs: 12.3, spreadMs: 1_000 });
    expect(refusal).toMatchObject({ code: "BREAKER_OPEN", retryAfterMs: 13 });
    expect(refusal.details).toEqual({ breaker: "stripe", retryAfterMs: 13 });
    expect([0, 0.5].map((random) => returnDelayMs(refusal, random))).toEqual([13, 513]);
  });
});

it("the diagram in the docs is the transition table", () => {
  const path = join(import.meta.dirname, "..", "..", "docs", "design", "breaker.md");
  const drawn = [...readFileSync(path, "utf8").matchAll(/^ {2}(\w+) --> (\w+): (\w+)$/gm)];
  const arrows = Object.entries(breakerTransitions).flatMap(([by, { from, to }]) =>
    from.map((state) => `${state} → ${to} by ${by}`),
  );
  expect(drawn.map(([, from, to, by]) => `${from} → ${to} by ${by}`).sort()).toEqual(arrows.sort());
});

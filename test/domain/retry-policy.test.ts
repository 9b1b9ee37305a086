import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { errorClasses } from "../../src/domain/error-class.ts";
import { defaultRetryPolicy, exponentialBackoff } from "../../src/domain/retry-policy.ts";

const middle = 0.5;
const delays = (errorClass: (typeof errorClasses)[number], failures: readonly number[]) =>
  failures.map((n) => defaultRetryPolicy({ class: errorClass }, n, middle) / 1_000);

describe("the default retry policy", () => {
  it("doubles from two seconds up to five minutes", () => {
    const seconds = [2, 4, 8, 16, 32, 64, 128, 256, 300, 300];
    const failures = seconds.map((_, i) => i + 1);
    expect(delays("transient", failures)).toEqual(seconds);
    expect(delays("retryable", failures)).toEqual(seconds);
  });

  it("doubles from one minute for rate limits", () => {
    expect(delays("rate_limited", [1, 2, 3, 4])).toEqual([60, 120, 240, 300]);
  });

  it("spreads by at most a fifth and never beyond the cap", () => {
    const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    const failures = fc.integer({ min: 1, max: 10_000 });
    fc.assert(
      fc.property(fc.constantFrom(...errorClasses), failures, random, (name, n, r) => {
        const delay = defaultRetryPolicy({ class: name }, n, r);
        const plain = defaultRetryPolicy({ class: name }, n, middle);
        expect(Number.isInteger(delay)).toBe(true);
        expect(delay).toBeGreaterThanOrEqual(Math.floor(plain * 0.8));
        expect(delay).toBeLessThanOrEqual(Math.min(300_000, Math.ceil(plain * 1.2)));
      }),
    );
    expect(defaultRetryPolicy({ class: "transient" }, 1, 0)).toBe(1_600);
    expect(defaultRetryPolicy({ class: "transient" }, 1, 0.999_999)).toBe(2_400);
  });

  it("does as the platform wishes, up to the cap and never before now", () => {
    const wished = (retryAfterMs: number) =>
      defaultRetryPolicy({ class: "rate_limited", retryAfterMs }, 5, 0);
    expect([wished(1_234), wished(86_400_000), wished(-5)]).toEqual([1_234, 300_000, 0]);
  });
});

describe("a policy of one's own", () => {
  it("takes base, cap and jitter", () => {
    const policy = exponentialBackoff({ baseMs: { transient: 10 }, capMs: 35, jitter: 0 });
    expect([1, 2, 3].map((n) => policy({ class: "transient" }, n, 0.9))).toEqual([10, 20, 35]);
    expect(policy({ class: "retryable" }, 1, 0)).toBe(35);
  });
});

import { expect, test } from "vitest";
import { mostWaitMs, Pace } from "../../src/client/pace.ts";

const most = 1_000;

test("a worker with room is not waited for", () => {
  const pace = new Pace();
  expect(pace.waitMs(100, most, 0)).toBe(0);
  pace.took(100, { behindMs: null, held: 900 }, 10);
  expect(pace.waitMs(100, most, 10)).toBe(0);
});

test("one that is about to be full is waited for as long as it takes at its pace", () => {
  const pace = new Pace();
  pace.took(100, { behindMs: null, held: 900 }, 10);
  // 100 of them were settled in 10 ms.
  pace.took(200, { behindMs: null, held: 1_000 }, 20);
  expect(pace.waitMs(50, most, 20)).toBeCloseTo(5);
  expect(pace.waitMs(50, most, 23)).toBeCloseTo(2);
  expect(pace.waitMs(50, most, 25)).toBeCloseTo(0);
});

test("a pace that changes is followed", () => {
  const pace = new Pace();
  let held = 1_000;
  pace.took(100, { behindMs: null, held }, 0);
  for (let at = 10; at <= 200; at += 10) pace.took(100, { behindMs: null, held }, at);
  expect(pace.waitMs(100, held, 200)).toBeCloseTo(10);
  for (let at = 210; at <= 600; at += 10) {
    held += 50;
    pace.took(100, { behindMs: null, held }, at);
  }
  expect(pace.waitMs(50, held, 600)).toBeCloseTo(10, 1);
});

test("nobody waits for long, whatever is known", () => {
  const pace = new Pace();
  pace.took(100, { behindMs: null, held: 1_000 }, 0);
  expect(pace.waitMs(100, most, 0)).toBe(mostWaitMs);
  pace.took(100, { behindMs: null, held: 1_099 }, 1_000);
  expect(pace.waitMs(1_000, most, 1_000)).toBe(mostWaitMs);
});

test("one that has just fallen behind is waited for, one that is far behind is not", () => {
  const pace = new Pace();
  expect(pace.refused({ behindMs: 7, held: 10 }, 100)).toBe(true);
  expect(pace.waitMs(10, most, 100)).toBe(7);
  expect(pace.waitMs(10, most, 107)).toBe(0);
  expect(pace.refused({ behindMs: mostWaitMs + 1, held: 10 }, 200)).toBe(false);
  expect(pace.waitMs(10, most, 200)).toBe(0);
  expect(pace.refused({ behindMs: null, held: most }, 300)).toBe(true);
  expect(pace.waitMs(1, most, 300)).toBeGreaterThan(0);
  pace.took(10, { behindMs: null, held: 20 }, 310);
  expect(pace.waitMs(10, most, 310)).toBe(0);
});

// Every rule of flow control beside a simple model of what it promises.

import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { agedKey, overtakenWithinMs } from "../../src/domain/ageing.ts";
import { shareOut, type TurnCursor } from "../../src/domain/fairness.ts";
import { laneKind, laneOf, laneRoom } from "../../src/domain/lane.ts";
import { sliceAt, throttleRoom } from "../../src/domain/throttle.ts";
import { admit, fullBucket, refilled, take, waitMs } from "../../src/domain/token-bucket.ts";

describe("fairness", () => {
  const tenants = fc.array(
    fc.record({ share: fc.integer({ min: 1, max: 5 }), jobs: fc.integer({ min: 0, max: 60 }) }),
    { minLength: 1, maxLength: 8 },
  );
  const claims = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 40 });

  test("a claim is filled as long as anything waits, and takes nothing that does not", () => {
    fc.assert(
      fc.property(tenants, fc.integer({ min: 1, max: 200 }), (list, most) => {
        const waiting = list.map((one, slot) => ({ ...one, slot }));
        const { taken } = shareOut(waiting, null, most);
        const all = waiting.reduce((n, { jobs }) => n + jobs, 0);
        const sum = [...taken.values()].reduce((a, b) => a + b, 0);
        expect(sum).toBe(Math.min(most, all));
        for (const { slot, jobs } of waiting)
          expect(taken.get(slot) ?? 0).toBeLessThanOrEqual(jobs);
      }),
    );
  });

  test("whoever waits is served before anybody else has had more than two visits", () => {
    fc.assert(
      fc.property(tenants, claims, (list, sizes) => {
        let cursor: TurnCursor | null = null;
        const left = list.map(({ jobs, share }, slot) => ({ slot, share, jobs }));
        const since = new Map<number, Map<number, number>>(
          left.map(({ slot }) => [slot, new Map()]),
        );
        for (const most of sizes) {
          const waiting = left.filter(({ jobs }) => jobs > 0);
          const shares = shareOut(waiting, cursor, most);
          cursor = shares.cursor;
          for (const one of left) {
            const got = shares.taken.get(one.slot) ?? 0;
            const waited = waiting.includes(one);
            one.jobs -= got;
            const others = since.get(one.slot) ?? new Map<number, number>();
            for (const [slot, count] of shares.taken)
              if (slot !== one.slot) others.set(slot, (others.get(slot) ?? 0) + count);
            if (waited && got === 0) {
              for (const [slot, count] of others)
                expect(count).toBeLessThanOrEqual(2 * (list[slot]?.share ?? 0));
            } else others.clear();
          }
        }
      }),
    );
  });

  test("tenants that never run out get shares by their weights, exact to one visit", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 2, maxLength: 6 }),
        claims,
        (weights, sizes) => {
          let cursor: TurnCursor | null = null;
          const total = new Map<number, number>();
          const waiting = weights.map((share, slot) => ({ slot, share, jobs: 1e9 }));
          for (const most of sizes) {
            const shares = shareOut(waiting, cursor, most);
            cursor = shares.cursor;
            for (const [slot, got] of shares.taken) total.set(slot, (total.get(slot) ?? 0) + got);
          }
          const visits = weights.map((share, slot) => (total.get(slot) ?? 0) / share);
          expect(Math.max(...visits) - Math.min(...visits)).toBeLessThanOrEqual(1);
        },
      ),
    );
  });
});

describe("ageing", () => {
  test("nobody is overtaken by what came later than the bound", () => {
    const jobs = fc.array(
      fc.record({
        weight: fc.integer({ min: -100, max: 100 }),
        readyAtMs: fc.integer({ min: 0, max: 1e6 }),
      }),
      { maxLength: 50 },
    );
    fc.assert(
      fc.property(jobs, fc.integer({ min: 1, max: 10_000 }), (list, stepMs) => {
        const order = [...list].sort((a, b) => agedKey(a, stepMs) - agedKey(b, stepMs));
        for (const [i, overtaken] of order.entries())
          for (const first of order.slice(0, i)) {
            const later = first.readyAtMs - overtaken.readyAtMs;
            const bound = overtakenWithinMs(overtaken.weight, first.weight, stepMs);
            expect(later).toBeLessThanOrEqual(bound);
          }
      }),
    );
  });
});

describe("throttle", () => {
  const throttle = fc.record({
    limit: fc.integer({ min: 1, max: 20 }),
    windowMs: fc.integer({ min: 10, max: 5_000 }),
  });
  const gaps = fc.array(fc.integer({ min: 0, max: 900 }), { minLength: 1, maxLength: 120 });

  test("no window sees more starts than the limit, and few are given away", () => {
    fc.assert(
      fc.property(throttle, gaps, (rule, pauses) => {
        const slices = new Map<number, number>();
        const starts: number[] = [];
        let now = 1_000_000;
        for (const gap of pauses) {
          now += gap;
          const { room, freeAtMs } = throttleRoom(rule, slices, now);
          const inWindow = (ms: number) => starts.filter((at) => at > now - ms).length;
          if (room > 0) {
            starts.push(now);
            slices.set(sliceAt(rule, now), (slices.get(sliceAt(rule, now)) ?? 0) + 1);
            expect(inWindow(rule.windowMs)).toBeLessThanOrEqual(rule.limit);
          } else {
            // Eleven slices of a tenth, rounded up: so much is looked back at most.
            expect(inWindow(1.1 * rule.windowMs + 12)).toBeGreaterThanOrEqual(rule.limit);
            expect(freeAtMs).toBeGreaterThan(now);
            expect(throttleRoom(rule, slices, freeAtMs ?? 0).room).toBeGreaterThan(0);
            expect(throttleRoom(rule, slices, (freeAtMs ?? 0) - 1).room).toBe(0);
          }
        }
      }),
    );
  });
});

describe("token bucket", () => {
  const rate = fc.record({
    limit: fc.integer({ min: 1, max: 50 }),
    windowMs: fc.integer({ min: 10, max: 10_000 }),
  });

  test("in any time no more pass than a full bucket and what flows in", () => {
    const calls = fc.array(
      fc.record({
        gap: fc.integer({ min: 0, max: 3_000 }),
        wanted: fc.integer({ min: 1, max: 9 }),
      }),
      { minLength: 1, maxLength: 80 },
    );
    fc.assert(
      fc.property(rate, calls, (rule, list) => {
        let now = 0;
        let bucket = fullBucket(rule, now);
        const passed: { at: number; n: number }[] = [];
        for (const { gap, wanted } of list) {
          now += gap;
          const taken = take(refilled(rule, bucket, now), wanted, 0);
          bucket = taken.bucket;
          passed.push({ at: now, n: taken.granted });
          if (taken.granted < wanted) {
            const ms = waitMs(rule, bucket.tokens, 1);
            expect(refilled(rule, bucket, now + ms).tokens).toBeGreaterThanOrEqual(1 - 1e-6);
          }
        }
        for (const [i, first] of passed.entries()) {
          const later = passed.slice(i);
          let sum = 0;
          for (const { at, n } of later) {
            sum += n;
            const inflow = ((at - first.at) * rule.limit) / rule.windowMs;
            expect(sum).toBeLessThanOrEqual(rule.limit + inflow + 1e-6);
          }
        }
      }),
    );
  });

  test("what is owed delays those behind it by as much as they exceed", () => {
    fc.assert(
      fc.property(rate, fc.integer({ min: 1, max: 200 }), (rule, jobs) => {
        const { bucket } = take(fullBucket(rule, 0), 0, jobs);
        const wait = waitMs(rule, bucket.tokens, 0);
        const exceeding = Math.max(0, jobs - rule.limit);
        expect(wait).toBe(Math.ceil((exceeding * rule.windowMs) / rule.limit));
      }),
    );
  });

  test("a call takes all of its tokens or none, and what nobody used is given back", () => {
    const wants = fc.array(
      fc.dictionary(fc.constantFrom("a", "b", "c"), fc.integer({ min: 1, max: 5 })),
      { maxLength: 20 },
    );
    const stock = fc.record({ a: fc.nat(20), b: fc.nat(20), c: fc.nat(20) });
    fc.assert(
      fc.property(wants, stock, (list, granted) => {
        const maps = list.map((want) => new Map(Object.entries(want)));
        const { passes, unused } = admit(maps, new Map(Object.entries(granted)));
        for (const [bucket, tokens] of Object.entries(granted)) {
          const used = maps.reduce(
            (n, want, i) => n + (passes[i] ? (want.get(bucket) ?? 0) : 0),
            0,
          );
          expect(used + (unused.get(bucket) ?? 0)).toBe(tokens);
          expect(used).toBeLessThanOrEqual(tokens);
        }
        // Whoever is refused would not fit beside those before it.
        for (const [i, passed] of passes.entries()) {
          if (passed) continue;
          const before = (bucket: string) =>
            maps
              .slice(0, i)
              .reduce((n, want, k) => n + (passes[k] ? (want.get(bucket) ?? 0) : 0), 0);
          const short = [...(maps[i] ?? [])].some(
            ([bucket, cost]) => before(bucket) + cost > (granted[bucket as "a"] ?? 0),
          );
          expect(short).toBe(true);
        }
      }),
    );
  });
});

describe("lanes", () => {
  const digest = (text: string) => createHash("sha256").update(text).digest("hex");

  test("a lane's number tells its kind, and is never that of jobs without a key", () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.constantFrom("ordered" as const, "limited" as const),
        (key, kind) => {
          const lane = laneOf(digest(key), kind);
          expect(laneKind(lane)).toBe(kind);
          expect(lane).toBeGreaterThan(1);
          expect(lane).toBeLessThanOrEqual(2_147_483_647);
        },
      ),
    );
    expect([laneKind(0), laneKind(-1)]).toEqual(["none", "none"]);
  });

  test("whatever starts and ends, no lane holds more than it may", () => {
    const events = fc.array(fc.constantFrom("start", "end", "retry", "due", "die", "bury"), {
      maxLength: 60,
    });
    const limits = fc.record({
      keyConcurrency: fc.option(fc.integer({ min: 1, max: 4 })),
      deadBlocksKey: fc.boolean(),
    });
    fc.assert(
      fc.property(
        events,
        limits,
        fc.constantFrom("none", "ordered", "limited"),
        (list, rules, kind) => {
          let [running, retrying, dead] = [0, 0, 0];
          for (const event of list) {
            const state = { kind, running, retrying: retrying > 0, dead: dead > 0 } as const;
            if (event === "start" && laneRoom(state, rules) > 0) running++;
            if (event === "end" && running > 0) running--;
            if (event === "retry" && running > 0) [running, retrying] = [running - 1, retrying + 1];
            if (event === "due" && retrying > 0) retrying--;
            if (event === "die" && running > 0) [running, dead] = [running - 1, dead + 1];
            if (event === "bury" && dead > 0) dead--;
            if (kind === "ordered") {
              expect(running + retrying).toBeLessThanOrEqual(1);
              if (rules.deadBlocksKey) expect(running + dead).toBeLessThanOrEqual(1);
            }
            if (kind === "limited" && rules.keyConcurrency !== null)
              expect(running).toBeLessThanOrEqual(rules.keyConcurrency);
          }
        },
      ),
    );
  });
});

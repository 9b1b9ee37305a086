import { createHash } from "node:crypto";
import fc from "fast-check";
import { expect, it } from "vitest";
import { agedKey } from "../../src/domain/ageing.ts";
import { shareOut, type TurnCursor } from "../../src/domain/fairness.ts";
import { laneOf } from "../../src/domain/lane.ts";
import { sliceAt, throttleRoom } from "../../src/domain/throttle.ts";
import { fullBucket, refilled, take } from "../../src/domain/token-bucket.ts";
import { laneQueue, takeLanes } from "./lanes.ts";
import { type Claim, ids, type Topic } from "./stage.ts";

export const shares: Topic = (stage) => {
  const rehearse = { numRuns: 12, seed: 5 };

  /** A queue with so many tenants; answers their slots. */
  async function tenants(queueId: number, weights: readonly number[], mark: string) {
    const slots: number[] = [];
    for (const [i, weight] of weights.entries()) {
      const name = `${mark}-${i}`;
      await stage().store.flow.configureTenant(name, { weight });
      slots.push(await stage().store.flow.slotOf(queueId, name));
    }
    return slots;
  }

  it("gives the first tenant slot 0, everybody else one of its own, and each the same again", async () => {
    const { id, name } = await laneQueue(stage());
    const { flow } = stage().store;
    const slots = [];
    for (const tenant of ["a", "b", "c", "b", "a"]) slots.push(await flow.slotOf(id, tenant));
    expect(slots[0]).toBe(0);
    expect(new Set(slots).size).toBe(3);
    expect([slots[3], slots[4]]).toEqual([slots[1], slots[0]]);
    const [queue] = await stage().store.ensureQueues("", [name]);
    expect(queue).toMatchObject({ controlled: true, fair: true, firstTenant: "a" });
  });

  it("a queue with one tenant stays plain", async () => {
    const { id, name } = await laneQueue(stage());
    await stage().store.flow.slotOf(id, "only");
    const [queue] = await stage().store.ensureQueues("", [name]);
    expect(queue).toMatchObject({ controlled: false, firstTenant: "only" });
  });

  it("shares out as the pure rule does, claim by claim", async () => {
    let runs = 0;
    const list = fc.array(
      fc.record({ share: fc.integer({ min: 1, max: 4 }), jobs: fc.integer({ min: 0, max: 12 }) }),
      { minLength: 2, maxLength: 5 },
    );
    const sizes = fc.array(fc.integer({ min: 1, max: 14 }), { minLength: 1, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(list, sizes, async (given, claims) => {
        const { id } = await laneQueue(stage());
        const weights = given.map(({ share }) => share);
        const slots = await tenants(id, weights, `t${++runs}`);
        const jobs = given.flatMap((one, i) =>
          stage().jobs(id, one.jobs, { tenantSlot: slots[i] ?? 0, tenant: `t${runs}-${i}` }),
        );
        if (jobs.length > 0) await stage().put(...jobs);
        const left = new Map(
          given.map((one, i) => [slots[i] ?? 0, { ...one, slot: slots[i] ?? 0 }]),
        );
        let cursor: TurnCursor | null = null;
        for (const most of claims) {
          const waiting = [...left.values()].filter((one) => one.jobs > 0);
          const expected = shareOut(waiting, cursor, most);
          const claimed = (await takeLanes(stage(), id, { limit: most })).jobs;
          cursor = waiting.length === 0 ? cursor : expected.cursor;
          expect(await slotsOf(claimed)).toEqual(expected.taken);
          // Done at once: only what waits is left in the table.
          await stage().complete(claimed);
          for (const [slot, got] of expected.taken) {
            const one = left.get(slot);
            if (one !== undefined) left.set(slot, { ...one, jobs: one.jobs - got });
          }
        }
      }),
      rehearse,
    );
  });

  async function slotsOf(jobs: readonly Claim[]): Promise<Map<number, number>> {
    const rows = await stage().sql<{ slot: number; n: number }>(
      "select tenant_slot as slot, count(*)::int as n from millrace.job where id = any($1) group by 1",
      [ids(jobs)],
    );
    return new Map(rows.map(({ slot, n }) => [slot, n]));
  }

  it("jobs of one claim come in turns, too", async () => {
    const { id } = await laneQueue(stage());
    const [a = 0, b = 0] = await tenants(id, [1, 1], "turns");
    await stage().put(...stage().jobs(id, 6, { tenantSlot: a, tenant: "turns-0" }));
    await stage().put(...stage().jobs(id, 2, { tenantSlot: b, tenant: "turns-1" }));
    const { jobs } = await takeLanes(stage(), id);
    expect(jobs.slice(0, 4).map(({ tenant }) => tenant)).toEqual([
      "turns-0",
      "turns-1",
      "turns-0",
      "turns-1",
    ]);
  });

  it("a claim ends the visit that the last one began before others have theirs", async () => {
    const { id } = await laneQueue(stage());
    const [a = 0, b = 0] = await tenants(id, [3, 1], "visit");
    await stage().put(...stage().jobs(id, 20, { tenantSlot: a, tenant: "visit-0" }));
    await stage().put(...stage().jobs(id, 5, { tenantSlot: b, tenant: "visit-1" }));
    const order: string[] = [];
    for (const limit of [1, 8, 2, 9]) {
      const { jobs } = await takeLanes(stage(), id, { limit });
      order.push(...jobs.map(({ tenant }) => tenant.replace("visit-", "")));
      await stage().complete(jobs);
    }
    expect(order.join("")).toBe("00010001000100010001");
  });

  it("a tenant that is paused is passed over, and its turn comes again", async () => {
    const { id } = await laneQueue(stage());
    const [a = 0, b = 0] = await tenants(id, [1, 1], "paused");
    await stage().put(...stage().jobs(id, 2, { tenantSlot: a, tenant: "paused-0" }));
    const others = await stage().put(...stage().jobs(id, 2, { tenantSlot: b, tenant: "paused-1" }));
    await stage().store.flow.pauseTenant("paused-0", true);
    expect(ids((await takeLanes(stage(), id)).jobs)).toEqual(others);
    await stage().store.flow.pauseTenant("paused-0", false);
    expect((await takeLanes(stage(), id)).jobs).toHaveLength(2);
  });

  it("a paused tenant makes its queues controlled, and its jobs wait there", async () => {
    const { id, name } = await laneQueue(stage());
    await stage().store.flow.slotOf(id, "alone");
    await stage().put(...stage().jobs(id, 2, { tenant: "alone" }));
    await stage().store.flow.pauseTenant("alone", true);
    const [queue] = await stage().store.ensureQueues("", [name]);
    expect(queue?.controlled).toBe(true);
    expect(await takeLanes(stage(), id)).toMatchObject({ jobs: [], waiting: true });
    await stage().store.flow.pauseTenant("alone", false);
    expect((await takeLanes(stage(), id)).jobs).toHaveLength(2);
  });

  it("with ageing, jobs come in the order of the pure rule; without, by priority", async () => {
    const stepMs = 1_000;
    const list = fc.array(
      fc.record({
        weight: fc.constantFrom(0, 5, 10),
        agoMs: fc.integer({ min: 0, max: 20_000 }),
      }),
      { minLength: 1, maxLength: 12 },
    );
    await fc.assert(
      fc.asyncProperty(list, fc.boolean(), async (given, ageing) => {
        const settings = ageing ? { ageingStepMs: stepMs } : { concurrency: 1_000 };
        const { id } = await laneQueue(stage(), settings);
        const byAge = [...given].sort((a, b) => b.agoMs - a.agoMs);
        const made: string[] = [];
        for (const { weight, agoMs } of byAge) {
          const [job] = await stage().put(stage().job(id, { weight, tenantSlot: 0 }));
          made.push(job ?? "");
          await stage().sql(
            "update millrace.job set ready_at = timestamptz '2030-01-01' - $2 * interval '1 ms' where id = $1",
            [job, agoMs],
          );
        }
        const key = ({ weight, agoMs }: (typeof given)[number]) =>
          ageing ? agedKey({ weight, readyAtMs: -agoMs }, stepMs) : weight;
        const expected = byAge
          .map((one, place) => ({ key: key(one), place, id: made[place] ?? "" }))
          .sort((a, b) => a.key - b.key || a.place - b.place);
        const keyOf = new Map(expected.map((one) => [one.id, one.key]));
        const claimed: string[] = [];
        for (let n = 0; n < made.length; n += 3)
          claimed.push(...ids((await takeLanes(stage(), id, { limit: 3 })).jobs));
        expect(claimed.map((one) => keyOf.get(one))).toEqual(expected.map((one) => one.key));
      }),
      rehearse,
    );
  });

  it("throttles as the pure rule does", async () => {
    const throttle = { limit: 4, windowMs: 60_000 };
    const { id } = await laneQueue(stage(), { throttle });
    await stage().put(...stage().jobs(id, 20, { tenantSlot: 0 }));
    const at = async () => {
      const rows = await stage().sql<{ ms: number }>(
        "select extract(epoch from clock_timestamp())::float8 * 1000 as ms",
      );
      return rows[0]?.ms ?? 0;
    };
    const early = await at();
    expect((await takeLanes(stage(), id, { limit: 3 })).jobs).toHaveLength(3);
    expect((await takeLanes(stage(), id)).jobs).toHaveLength(1);
    const blocked = await takeLanes(stage(), id);
    expect(blocked).toMatchObject({ jobs: [], reason: "throttle", waiting: true });
    const late = await at();
    const free = (ms: number) =>
      (throttleRoom(throttle, new Map([[sliceAt(throttle, ms), 4]]), ms).freeAtMs ?? 0) - ms;
    expect(blocked.freeInMs).toBeGreaterThanOrEqual(
      Math.min(free(late), free(early)) - (late - early) - 1,
    );
    expect(blocked.freeInMs).toBeLessThanOrEqual(
      Math.max(free(early), free(late)) + (late - early) + 1,
    );
    // Nearly a window later it is as full, and a window later all of it is free again.
    const age = (slices: number) =>
      stage().sql("update millrace.start_count set slice = slice - $2 where queue_id = $1", [
        id,
        slices,
      ]);
    await age(9);
    expect((await takeLanes(stage(), id)).reason).toBe("throttle");
    await age(2);
    expect((await takeLanes(stage(), id)).jobs).toHaveLength(4);
  });

  it("throttles keys each by itself", async () => {
    const { id } = await laneQueue(stage(), { keyThrottle: { limit: 2, windowMs: 60_000 } });
    await stage().store.flow.useLanes(id);
    for (const lane of [4, 6]) await stage().put(...stage().jobs(id, 5, { tenantSlot: 0, lane }));
    expect((await takeLanes(stage(), id, { limit: 3 })).jobs).toHaveLength(3);
    expect((await takeLanes(stage(), id)).jobs).toHaveLength(1);
    expect(await takeLanes(stage(), id)).toMatchObject({ jobs: [], waiting: true });
  });

  it("gives out tokens as the pure rule does, also below zero", async () => {
    const rate = { limit: 5, windowMs: 600_000 };
    const key = "bucket of the test";
    const { flow } = stage().store;
    let bucket = fullBucket(rate, 0);
    for (const [wanted, owed] of [
      [3, 0],
      [4, 0],
      [1, 0],
      [0, 2],
      [1, 3],
    ] as const) {
      const expected = take(refilled(rate, bucket, 0), wanted, owed);
      bucket = expected.bucket;
      const grant = (await flow.takeTokens([{ key, rate, wanted, owed }])).get(key);
      expect(grant?.granted).toBe(expected.granted);
      expect(grant?.tokens).toBeCloseTo(expected.bucket.tokens, 0);
    }
    await flow.giveBackTokens(new Map([[key, 100]]));
    const again = await flow.takeTokens([{ key, rate, wanted: 9, owed: 0 }]);
    expect(again.get(key)?.granted).toBe(5);
    // Half a window fills half a bucket.
    await stage().sql("update millrace.rate_bucket set at = at - interval '300 s' where key = $1", [
      key,
    ]);
    expect((await flow.takeTokens([{ key, rate, wanted: 9, owed: 0 }])).get(key)?.granted).toBe(2);
  });

  it("buckets that are asked for together and in any order do not block each other", async () => {
    const { flow } = stage().store;
    // So slow that nothing comes back meanwhile.
    const rate = { limit: 1_000, windowMs: 86_400_000 };
    const keys = Array.from({ length: 20 }, (_, i) => `together-${i}`);
    const calls = Array.from({ length: 20 }, (_, i) => {
      const turned = i % 2 === 0 ? keys : [...keys].reverse();
      return flow.takeTokens(turned.map((key) => ({ key, rate, wanted: 3, owed: 0 })));
    });
    for (const grants of await Promise.all(calls))
      for (const key of keys) expect(grants.get(key)?.granted).toBe(3);
    const left = await flow.takeTokens([{ key: "together-0", rate, wanted: 1_000, owed: 0 }]);
    expect(left.get("together-0")?.granted).toBe(940);
  });

  it("finds the same lane for a key in SQL and in TypeScript", async () => {
    const samples = fc.sample(fc.string({ unit: "binary" }), { numRuns: 15, seed: 7 });
    for (const key of samples.map((text) => text.replaceAll("\0", "").toWellFormed())) {
      for (const kind of ["ordered", "limited"] as const) {
        const digest = createHash("sha256").update(`acme\n${key}`).digest("hex");
        const rows = await stage().sql<{ lane: number }>(
          "select millrace.lane_of('acme', $1, $2) as lane",
          [key, kind === "ordered"],
        );
        expect(rows[0]?.lane).toBe(laneOf(digest, kind));
      }
    }
  });
};

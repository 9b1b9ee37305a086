import { expect, it } from "vitest";
import type { NewJob } from "../../src/store/store.ts";
import { laneSteps } from "./lanes.ts";
import { ids, type Topic } from "./stage.ts";

const ordered = 3;
const limited = 4;

/** Which keys a claim looks at, and what it sees of them. */
export const laneVisits: Topic = (stage) => {
  const { take, put, keyed, idsOf } = laneSteps(stage);

  it("deep keys neither hold up those behind them nor get more than their share", async () => {
    const id = await keyed({ keyConcurrency: 3 });
    const deep = [ordered, limited, 21, 22];
    for (const lane of deep) await put(id, lane, 300);
    const shallow = Array.from({ length: 12 }, (_, n) => 100 + n);
    for (const lane of shallow) await put(id, lane, 5);
    const held = new Map<number, number>();
    for (let claims = 0; claims < 4; claims++) {
      for (const { id: job } of (await take(id, { limit: 20 })).jobs) {
        const [row] = await stage().sql<{ lane: number }>(
          "select lane from millrace.job where id = $1",
          [job],
        );
        held.set(row?.lane ?? 0, (held.get(row?.lane ?? 0) ?? 0) + 1);
      }
    }
    const room = [...deep, ...shallow].map((lane) => [lane, lane % 2 === 1 ? 1 : 3]);
    expect([...held].sort(([a], [b]) => a - b)).toEqual(room.sort(([a = 0], [b = 0]) => a - b));
  });

  it.each([
    ["one", "a few", 1, 2],
    ["one", "many", 1, 300],
    ["many", "a few", 300, 2],
  ])(
    "%s committed late, with %s behind, wait for the job that has overtaken them",
    async (...given) => {
      const [, , late, behind] = given;
      const id = await keyed();
      const [early] = await put(id, ordered, behind);
      const running = await take(id, { limit: 5 });
      const overtaken = await put(id, ordered, late);
      await stage().sql("update millrace.job set seq = seq - 1e12 where id = any ($1)", [
        overtaken,
      ]);
      expect(ids(running.jobs)).toEqual([early]);
      expect(await idsOf(id, { limit: 5 })).toEqual([]);
      await stage().complete(running.jobs);
      expect(await idsOf(id, { limit: 5 })).toEqual(overtaken.slice(0, 1));
    },
  );

  it.each([
    ["an ordering", ordered, 1],
    ["a limit", limited, 3],
  ])(
    "%s key with a long line goes on while others of its claim still run",
    async (_, lane, room) => {
      const id = await keyed({ keyConcurrency: 3 });
      await put(id, lane, 300);
      await put(id, lane + 100, 300);
      const { jobs } = await take(id, { limit: 20 });
      expect(jobs).toHaveLength(2 * room);
      const inLane = await stage().sql<{ id: string }>(
        "select id from millrace.job where claim_id is not null and lane = $1 and queue_id = $2",
        [lane, id],
      );
      const ended = jobs.filter((job) => inLane.some((row) => row.id === job.id)).slice(0, 1);
      await stage().complete(ended);
      expect((await take(id, { limit: 20 })).jobs).toHaveLength(1);
      expect((await take(id, { limit: 20 })).jobs).toEqual([]);
    },
  );

  it("keys take turns, however many there are", async () => {
    const id = await keyed({ keyConcurrency: 1 });
    for (let key = 1; key <= 6; key++) await put(id, 2 * key, 3);
    const seen: number[] = [];
    for (let i = 0; i < 6; i++) {
      const { jobs } = await take(id, { limit: 1 });
      const rows = await stage().sql<{ lane: number }>(
        "select lane from millrace.job where id = $1",
        [jobs[0]?.id],
      );
      seen.push(rows[0]?.lane ?? 0);
      await stage().complete(jobs);
    }
    expect(new Set(seen).size).toBe(6);
  });

  it.each([0, 200])(
    "keys of another's types, one of them %i deep, do not hide those behind them",
    async (deep) => {
      const id = await keyed({ keyConcurrency: 1 });
      const foreign = (lane: number) => stage().job(id, { tenantSlot: 0, lane, type: "other" });
      for (let from = 0; from < 1_600; from += 800)
        await stage().put(...Array.from({ length: 800 }, (_, n) => foreign(2 * (from + n + 1))));
      if (deep > 0) await stage().put(...Array.from({ length: deep }, () => foreign(601)));
      const [own] = await put(id, 2 * 1_500 + 1, 1);
      const found: string[] = [];
      const visited: string[] = [];
      while (found.length === 0 && visited.filter((place) => place === "end").length < 2) {
        const claimed = await take(id, { limit: 1, types: ["work"] });
        found.push(...ids(claimed.jobs));
        visited.push(claimed.visited);
      }
      expect(found).toEqual([own]);
      expect(visited.length).toBeLessThan(20);
    },
  );

  it("blocked keys do not hide those behind them", async () => {
    const id = await keyed({ keyConcurrency: 1 });
    const each = (job: (lane: number) => NewJob) =>
      stage().put(...Array.from({ length: 700 }, (_, n) => job(2 * (n + 1))));
    const inLane = (lane: number) => stage().job(id, { tenantSlot: 0, lane });
    await each(inLane);
    const first = await take(id, { limit: 700 });
    await each(inLane);
    const [last] = await put(id, 2 * 701, 1);
    const found: string[] = [];
    for (let tries = 0; tries < 5; tries++) found.push(...(await idsOf(id, { limit: 1 })));
    expect(first.jobs).toHaveLength(700);
    expect(found).toEqual([last]);
  });
};

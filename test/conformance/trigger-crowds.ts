import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TriggerRunner } from "../../src/manager/trigger-runner.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { Events } from "../../src/runtime/events.ts";
import type { TriggerSession } from "../../src/store/triggers.ts";
import { refusal } from "../support/instance.ts";
import { until } from "../support/until.ts";
import type { Topic } from "./stage.ts";
import { databaseNow, dueTrigger, jobsIn, owe, read } from "./trigger-stage.ts";

export const triggerCrowds: Topic = (stage) => {
  let session: TriggerSession;
  beforeAll(() => {
    session = stage().store.triggerSession({ maxAttempts: 7 });
  });
  afterAll(() => session.close());

  const setCapacity = (queueId: number, capacity: number) =>
    stage().sql("update millrace.queue set capacity = $2 where id = $1", [queueId, capacity]);

  /** It fires every second and owes the last so many slots. */
  const behind = async (slots: number) => {
    const made = await dueTrigger(stage(), 5, { cron: "* * * * * *", missedSlots: "all" });
    const now = Math.floor((await databaseNow(stage())).getTime() / 1000) * 1000;
    await owe(stage(), made.id, new Date(now - (slots - 1) * 1000));
    return { ...made, first: now - (slots - 1) * 1000 };
  };

  describe("slots that do not all fit into their queue", () => {
    it("are taken as far as there is room, the oldest first; the rest stays owed", async () => {
      const made = await behind(12);
      await setCapacity(made.jobQueueId, 5);
      const [one, ...more] = (await session.fire(made.id))?.jobIds ?? [];
      expect(more).toHaveLength(4);
      const slots = [0, 1, 2, 3, 4].map((i) => new Date(made.first + i * 1000).toISOString());
      const jobs = await Promise.all([one ?? "", ...more].map((id) => stage().find(id)));
      expect(jobs.map(({ meta }) => meta.slot)).toEqual(slots);
      const after = await read(stage(), made.id);
      expect(after).toMatchObject({ failures: 0, lastError: null, retryAt: null });
      expect(after).toMatchObject({ nextFireAt: new Date(made.first + 5_000) });
      expect((await refusal(session.fire(made.id))).code).toBe("QUEUE_FULL");
      expect(await read(stage(), made.id)).toEqual(after);
      await stage().complete(await stage().claim(made.jobQueueId, { limit: 3 }));
      expect((await session.fire(made.id))?.jobIds).toHaveLength(3);
      await setCapacity(made.jobQueueId, 100);
      expect((await session.fire(made.id))?.jobIds.length).toBeGreaterThanOrEqual(4);
      const text = "select count(*)::int as n from millrace.trigger_slot where trigger_id = $1";
      const [slots12] = await stage().sql<{ n: number }>(text, [made.id]);
      expect(slots12?.n).toBeGreaterThanOrEqual(12);
      await stage().store.triggers.delete(made.id);
    });

    it("leave it failing, so that nobody is told of it each time anew", async () => {
      const made = await behind(3);
      await setCapacity(made.jobQueueId, 1);
      const error = { code: "QUEUE_FULL", message: "full" };
      for (let i = 0; i < 4; i++) await session.noteFailure(made.id, error, 0);
      expect((await session.fire(made.id))?.jobIds).toHaveLength(1);
      const after = await read(stage(), made.id);
      expect(after).toMatchObject({ failures: 1, lastError: error, retryAt: null });
      await setCapacity(made.jobQueueId, 100);
      await session.fire(made.id);
      expect(await read(stage(), made.id)).toMatchObject({ failures: 0, lastError: null });
      await stage().store.triggers.delete(made.id);
    });
  });

  describe("triggers that are due together", () => {
    it("fire in one transaction, and none of them when one cannot", async () => {
      const [one, two, full] = [
        await dueTrigger(stage()),
        await dueTrigger(stage()),
        await dueTrigger(stage()),
      ];
      await setCapacity(full.jobQueueId, 0);
      const seenAt = await databaseNow(stage());
      const refused = session.fireTogether([one.id, two.id, full.id], seenAt);
      expect((await refusal(refused)).code).toBe("QUEUE_FULL");
      expect(await read(stage(), one.id)).toMatchObject({ lastFiredAt: null });
      const gone = "00000000-0000-7000-8000-000000000000";
      const fired = await session.fireTogether([one.id, gone, two.id], seenAt);
      expect(fired.map((each) => each?.jobIds.length ?? null)).toEqual([1, null, 1]);
      const [a, b] = [await read(stage(), one.id), await read(stage(), two.id)];
      expect(a.lastFiredAt).toEqual(b.lastFiredAt);
      await stage().store.triggers.delete(full.id);
    });

    it("are not late for what came before them", async () => {
      const made = await dueTrigger(stage(), 600);
      const seenAt = new Date(made.slot.getTime() + 1_000);
      const [fired] = await session.fireTogether([made.id], seenAt);
      expect(fired).toMatchObject({ jobIds: [expect.any(String)], missedFrom: null });
    });

    it("are late for their own failures", async () => {
      const made = await dueTrigger(stage(), 600);
      await session.noteFailure(made.id, { code: "QUEUE_FULL", message: "full" }, 0);
      const [fired] = await session.fireTogether([made.id], made.slot);
      expect(fired).toMatchObject({ jobIds: [], missedFrom: made.slot });
    });

    it("do not hold up those that fire often", async () => {
      const often = await dueTrigger(stage(), 1);
      await stage().sql("update millrace.trigger set last_fired_at = now() where id = $1", [
        often.id,
      ]);
      const others = [await dueTrigger(stage(), 30), await dueTrigger(stage(), 20)];
      const found = (await session.due(2)).map(({ id }) => id);
      expect(found[0]).toBe(often.id);
      expect(found).toEqual(expect.arrayContaining(others.map(({ id }) => id)));
      expect(new Set(found).size).toBe(found.length);
      for (const { id } of [often, ...others]) await stage().store.triggers.delete(id);
    });
  });

  it("a runner that is busy with many misses none of them, and passes over what cannot fire", async () => {
    const first = await dueTrigger(stage(), 600);
    await stage().sql(
      `insert into millrace.trigger
      select (jsonb_populate_record(t, jsonb_build_object('id', gen_random_uuid(), 'name', t.name || '-' || n))).*
      from millrace.trigger t, generate_series(1, 249) n where t.id = $1`,
      [first.id],
    );
    const full = await dueTrigger(stage(), 601);
    await setCapacity(full.jobQueueId, 0);
    const [events, missed, failed] = [new Events(), [] as string[], [] as string[]];
    events.on("trigger.missed", ({ id }) => missed.push(id));
    events.on("trigger.failed", ({ id }) => failed.push(id));
    let looks = 0;
    // As if ten minutes went by between its first look and all others.
    const slow: TriggerSession = {
      ...session,
      async due(limit) {
        const [found, agoMs] = [await session.due(limit), looks++ === 0 ? 600_000 : 0];
        return found.map((one) => ({ ...one, seenAt: new Date(one.seenAt.getTime() - agoMs) }));
      },
    };
    const own = { isWanted: async () => true, intervalMs: 60_000, clock: systemClock };
    const runner = new TriggerRunner({ ...own, session: slow, random: () => 0.5, events });
    await runner.start();
    await until(
      "all have fired",
      async () => (await jobsIn(stage(), first.jobQueueId)).length === 250,
    );
    await runner.stop();
    expect(missed).toEqual([]);
    expect(failed).toEqual([full.id]);
    expect(looks).toBeGreaterThan(1);
  });
};

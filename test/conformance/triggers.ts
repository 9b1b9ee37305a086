import { randomBytes, randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { uuidv7 } from "../../src/runtime/uuid.ts";
import type { TriggerSession } from "../../src/store/triggers.ts";
import { refusal } from "../support/instance.ts";
import { dead, type Topic } from "./stage.ts";
import { databaseNow, dueTrigger, jobsIn, owe, read, yearly } from "./trigger-stage.ts";

export const triggers: Topic = (stage) => {
  let session: TriggerSession;
  beforeAll(() => {
    session = stage().store.triggerSession({ maxAttempts: 7 });
  });
  afterAll(() => session.close());

  describe("a time trigger", () => {
    it("makes a job for its slot, and says when it did and when it will", async () => {
      const made = await dueTrigger(stage(), 5, { maxRuntimeMs: 9_000, weight: 3, priority: "x" });
      expect((await session.due(100)).map(({ id }) => id)).toContain(made.id);
      const fired = await session.fire(made.id);
      const [id = ""] = fired?.jobIds ?? [];
      expect(fired).toEqual({ jobIds: [id], items: 0, missedFrom: null, again: false });
      const job = await stage().find(id);
      expect(job).toMatchObject({ state: "ready", type: "made", tenant: "acme", weight: 3 });
      expect(job).toMatchObject({ maxAttempts: 7, payload: { from: "trigger" } });
      const slot = made.slot.toISOString();
      expect(job.meta).toEqual({ source: "TRIGGER", trigger: made.id, slot, priority: "x" });
      const nextYear = new Date(made.slot);
      nextYear.setUTCFullYear(nextYear.getUTCFullYear() + 1);
      expect(await read(stage(), made.id)).toMatchObject({
        lastFiredAt: job.createdAt,
        lastJobId: id,
        nextFireAt: nextYear,
        failures: 0,
      });
      expect(await session.fire(made.id)).toBeNull();
    });

    it("makes one job however many runners come at once", async () => {
      const made = await dueTrigger(stage());
      const sessions = [1, 2, 3, 4, 5, 6].map(() =>
        stage().store.triggerSession({ maxAttempts: 5 }),
      );
      const answers = await Promise.all(
        sessions.flatMap((one) => [one.fire(made.id), one.fire(made.id)]),
      );
      for (const one of sessions) await one.close();
      expect(answers.flatMap((fired) => fired?.jobIds ?? [])).toHaveLength(1);
      expect(await jobsIn(stage(), made.jobQueueId)).toHaveLength(1);
    });

    it("makes no second job for a slot that is owed again", async () => {
      const made = await dueTrigger(stage());
      const [first] = (await session.fire(made.id))?.jobIds ?? [];
      // Two leaders, a restored row, a clock set back: only the slot's own row is left to refuse.
      await owe(stage(), made.id, made.slot);
      await stage().sql("update millrace.trigger set handled_until = null where id = $1", [
        made.id,
      ]);
      const before = await read(stage(), made.id);
      expect((await session.fire(made.id))?.jobIds).toEqual([]);
      expect(await jobsIn(stage(), made.jobQueueId)).toEqual([first]);
      const after = await read(stage(), made.id);
      expect(after.lastFiredAt).toEqual(before.lastFiredAt);
      expect(after.nextFireAt?.getTime()).toBeGreaterThan(made.slot.getTime());
    });

    it("does not look for slots again that it is done with, even without their rows", async () => {
      const made = await dueTrigger(stage());
      await session.fire(made.id);
      await stage().sql("delete from millrace.trigger_slot where trigger_id = $1", [made.id]);
      await owe(stage(), made.id, made.slot);
      expect((await session.fire(made.id))?.jobIds).toEqual([]);
      expect(await jobsIn(stage(), made.jobQueueId)).toHaveLength(1);
    });

    it.each([
      ["skip", 0],
      ["last", 1],
      ["all", 1],
    ] as const)("that missed its slot: %s makes %i jobs", async (missedSlots, jobs) => {
      const made = await dueTrigger(stage(), 3_600, { missedSlots });
      const fired = await session.fire(made.id);
      expect(fired?.jobIds).toHaveLength(jobs);
      expect(fired?.missedFrom).toEqual(jobs === 0 ? made.slot : null);
      const { lastFiredAt, nextFireAt } = await read(stage(), made.id);
      expect(lastFiredAt === null).toBe(jobs === 0);
      expect(nextFireAt?.getTime()).toBeGreaterThan(Date.now());
    });

    it("catches up with all its slots in order, each with its own", async () => {
      const more = { cron: "0 * * * *", missedSlots: "all", maxCatchUp: 3 } as const;
      const made = await dueTrigger(stage(), 5, more);
      const now = await databaseNow(stage());
      const hour = new Date(Math.floor(now.getTime() / 3_600_000) * 3_600_000 - 24 * 3_600_000);
      await owe(stage(), made.id, hour);
      const fired = await session.fire(made.id);
      const slots = await Promise.all(
        (fired?.jobIds ?? []).map(async (id) => (await stage().find(id)).meta.slot ?? ""),
      );
      expect(fired?.missedFrom).toEqual(hour);
      expect(slots).toEqual([...slots].sort());
      expect(new Set(slots).size).toBe(slots.length);
      // Three missed ones, and one more if an hour has begun within the last minute.
      expect([3, 4]).toContain(slots.length);
    });

    it("is left alone while it is disabled, and starts from now when enabled", async () => {
      const { triggers: store } = stage().store;
      const made = await dueTrigger(stage());
      const off = await store.update(made.id, (trigger) => ({ ...trigger, enabled: false }));
      expect(off).toMatchObject({ enabled: false, nextFireAt: null });
      expect(await session.fire(made.id)).toBeNull();
      const on = await store.update(made.id, (trigger) => ({ ...trigger, enabled: true }));
      expect(on.nextFireAt?.getTime()).toBeGreaterThan(Date.now());
      expect(await session.fire(made.id)).toBeNull();
    });

    it("still owes its slot when something else about it changes", async () => {
      const made = await dueTrigger(stage());
      const change = { payload: { changed: true }, name: `${made.name}-renamed` };
      await stage().store.triggers.update(made.id, (trigger) => ({ ...trigger, ...change }));
      const [id = ""] = (await session.fire(made.id))?.jobIds ?? [];
      expect((await stage().find(id)).payload).toEqual({ changed: true });
    });

    it("does not fire for the past of an expression it is given", async () => {
      const made = await dueTrigger(stage());
      const { cron } = await yearly(stage(), 20);
      await stage().store.triggers.update(made.id, (trigger) => ({ ...trigger, cron }));
      expect(await session.fire(made.id)).toBeNull();
    });

    it("carries an envelope of its own each time where its jobs are governed", async () => {
      const made = await dueTrigger(stage(), 5, { category: "sync", payload: { platform: "p" } });
      const [id = ""] = (await session.fire(made.id))?.jobIds ?? [];
      const key = `trigger:${made.id}:${made.slot.toISOString()}`;
      const envelope = { tenant_id: "acme", correlation_id: id, idempotency_key: key };
      const job = await stage().find(id);
      expect(job).toMatchObject({ idempotencyKey: key, correlationId: id });
      expect(job.payload).toEqual({ platform: "p", ...envelope });
    });
  });

  describe("a trigger that cannot fire", () => {
    it("leaves everything as it was, and is not tried before its time", async () => {
      const made = await dueTrigger(stage());
      await stage().sql("update millrace.queue set capacity = 0 where id = $1", [made.jobQueueId]);
      const before = await read(stage(), made.id);
      expect((await refusal(session.fire(made.id))).code).toBe("QUEUE_FULL");
      expect(await read(stage(), made.id)).toEqual(before);
      const error = { code: "QUEUE_FULL", message: "full" };
      const retryAt = await session.noteFailure(made.id, error, 60_000);
      const failed = await read(stage(), made.id);
      expect(failed).toMatchObject({ failures: 1, lastError: error, retryAt });
      expect(failed.nextFireAt).toEqual(made.slot);
      expect((await session.due(100)).map(({ id }) => id)).not.toContain(made.id);
      expect(await session.fire(made.id)).toBeNull();
    });

    it("tells once when it begins to fail, if a webhook wants to hear it", async () => {
      const [made, error] = [await dueTrigger(stage()), { code: "QUEUE_FULL", message: "full" }];
      const told = () =>
        stage().sql("select data from millrace.notification where kind = 'trigger.failed'");
      await session.noteFailure(made.id, error, 60_000);
      expect(await told()).toEqual([]);
      const webhook = { id: randomUUID(), tenant: null, name: "ours", url: "https://example.com/" };
      const wanted = { kinds: ["trigger.failed"], queues: null, signingKey: randomBytes(32) };
      await stage().store.webhooks.create({ ...webhook, ...wanted }, { actor: "operator" });
      const other = await dueTrigger(stage());
      await session.noteFailure(other.id, error, 60_000);
      await session.noteFailure(other.id, error, 60_000);
      expect(await told()).toMatchObject([{ data: { trigger_id: other.id, error } }]);
      await stage().sql("delete from millrace.webhook");
      await stage().sql("delete from millrace.notification");
    });

    it("writes nothing under a term that is over", async () => {
      const fenced = stage().store.triggerSession({ maxAttempts: 5, term: 4_711 });
      const made = await dueTrigger(stage());
      expect((await refusal(fenced.fire(made.id))).code).toBe("NOT_LEADER");
      expect(await read(stage(), made.id)).toMatchObject({ failures: 0, lastFiredAt: null });
      await fenced.close();
    });

    it("makes its job and is clear of failures once it can", async () => {
      const made = await dueTrigger(stage());
      await session.noteFailure(made.id, { code: "QUEUE_FULL", message: "full" }, 0);
      expect((await session.fire(made.id))?.jobIds).toHaveLength(1);
      const clear = { failures: 0, lastError: null, retryAt: null };
      expect(await read(stage(), made.id)).toMatchObject(clear);
    });

    it("is refused by a queue that takes no jobs", async () => {
      const made = await dueTrigger(stage());
      await stage().sql("update millrace.queue set is_active = false where id = $1", [
        made.jobQueueId,
      ]);
      expect((await refusal(session.fire(made.id))).code).toBe("QUEUE_INACTIVE");
    });
  });

  describe("the list of triggers", () => {
    it("has names that are unique for each tenant", async () => {
      const { triggers: store } = stage().store;
      const made = await dueTrigger(stage());
      expect((await refusal(store.create(uuidv7(), made))).code).toBe("TRIGGER_NAME_TAKEN");
      const other = await store.create(uuidv7(), { ...made, tenant: "globex" });
      const rename = store.update(other.id, (trigger) => ({ ...trigger, tenant: "acme" }));
      expect((await refusal(rename)).code).toBe("TRIGGER_NAME_TAKEN");
      const found = await store.list({ name: made.name }, 10);
      expect(found.map(({ tenant }) => tenant)).toEqual(["acme", "globex"]);
    });

    it("forgets what is deleted; its jobs stay", async () => {
      const made = await dueTrigger(stage());
      const [id = ""] = (await session.fire(made.id))?.jobIds ?? [];
      expect(await stage().store.triggers.delete(made.id)).toBe(true);
      expect(await stage().store.triggers.delete(made.id)).toBe(false);
      expect(await stage().store.triggers.find(made.id)).toBeNull();
      expect(await stage().stateOf(id)).toBe("ready");
      const change = stage().store.triggers.update(made.id, (trigger) => trigger);
      expect((await refusal(change)).code).toBe("TRIGGER_NOT_FOUND");
    });

    it("says when the next one is due", async () => {
      const made = await dueTrigger(stage(), -3_000);
      await stage().sql("update millrace.trigger set enabled = id = $1", [made.id]);
      const { waitMs } = await session.waitForNext();
      expect(waitMs).toBeGreaterThan(2_000_000);
      expect(waitMs).toBeLessThanOrEqual(3_000_000);
    });
  });

  it("a job that a trigger made fails and dies as any other", async () => {
    const made = await dueTrigger(stage(), 5, { maxAttempts: 1 });
    const [id = ""] = (await session.fire(made.id))?.jobIds ?? [];
    const [job] = await stage().claim(made.jobQueueId);
    expect(job?.id).toBe(id);
    if (job !== undefined) await stage().settle(job, dead);
    expect(await stage().find(id)).toMatchObject({ state: "dead", maxAttempts: 1 });
  });
};

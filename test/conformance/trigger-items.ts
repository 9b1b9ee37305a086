import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { TriggerSession } from "../../src/store/triggers.ts";
import { cancelled, dead, ids, released, retried, type Topic } from "./stage.ts";
import { itemHolder, itemRunner, jobsIn, queueTrigger, read, settleItem } from "./trigger-stage.ts";

export const triggerItems: Topic = (stage) => {
  let session: TriggerSession;
  beforeAll(() => {
    session = stage().store.triggerSession({ maxAttempts: 5 });
  });
  afterAll(() => session.close());

  const holding = (count: number) => itemHolder(stage(), session, count);
  const running = (count: number) => itemRunner(stage(), session, count);

  const states = async (itemIds: readonly string[]) =>
    Promise.all(itemIds.map((id) => stage().stateOf(id)));

  describe("a queue trigger", () => {
    it("makes one job of what is ready, in the queue's order, up to its batch", async () => {
      const trigger = await queueTrigger(stage(), { batchSize: 3 });
      const { queueId, jobQueueId } = trigger;
      const low = await stage().put(...stage().jobs(queueId, 2, { weight: 10 }));
      const high = await stage().put(...stage().jobs(queueId, 2, { weight: 0 }));
      await stage().put(stage().job(queueId, { delayMs: 60_000 }));
      const fired = await session.fire(trigger.id);
      const [jobId = ""] = fired?.jobIds ?? [];
      const taken = [...high, low[0] ?? ""];
      expect(fired).toEqual({ jobIds: [jobId], items: 3, missedFrom: null, again: false });
      const job = await stage().find(jobId);
      expect(job.payload).toEqual({ from: "trigger", queue_item_ids: taken });
      expect(job.meta).toEqual({ source: "TRIGGER", trigger: trigger.id });
      expect(await jobsIn(stage(), jobQueueId)).toEqual([jobId]);
      expect(await states([...taken, low[1] ?? ""])).toEqual([
        "running",
        "running",
        "running",
        "ready",
      ]);
      const after = await read(stage(), trigger.id);
      expect(after).toMatchObject({ lastProcessedItemId: low[0], lastJobId: jobId });
      expect(after.lastFiredAt).toEqual(job.createdAt);
      expect((after.nextFireAt?.getTime() ?? 0) - job.createdAt.getTime()).toBe(30_000);
    });

    it("keeps the limits and keys of its queue, and its items count among what runs", async () => {
      const queueId = await stage().queue();
      const { name } = (await stage().store.queues()).find(({ id }) => id === queueId) ?? {
        name: "",
      };
      await stage().store.configureQueue("", name, { concurrency: 3 });
      await stage().store.flow.useLanes(queueId);
      const trigger = await queueTrigger(stage(), { queueId, batchSize: 9 });
      const keyed = { lane: 7, tenantSlot: 0 };
      const first = await stage().put(...stage().jobs(queueId, 2, { ...keyed, maxAttempts: 1 }));
      const others = await stage().put(...stage().jobs(queueId, 2));
      const fired = await session.fire(trigger.id);
      expect(fired?.items).toBe(3);
      const taken = [first[0] ?? "", ...others];
      expect((await states(taken)).sort()).toEqual(["running", "running", "running"]);
      const leaseId = await stage().openLease();
      const claim = { claimId: randomUUID(), leaseId, queueId, limit: 9, types: null };
      const claimed = await stage().worker.claimLanes({ ...claim, suspect: true });
      expect(claimed).toMatchObject({ jobs: [], reason: "concurrency" });
      const [job] = await stage().claim(trigger.jobQueueId);
      expect(job?.payload).toMatchObject({ queue_item_ids: expect.arrayContaining(taken) });
      expect(await stage().complete(job === undefined ? [] : [job])).toBe(1);
    });

    it("makes no job when nothing is ready, and looks again after its interval", async () => {
      const trigger = await queueTrigger(stage(), { pollingIntervalMs: 5_000 });
      expect((await session.fire(trigger.id))?.jobIds).toEqual([]);
      const after = await read(stage(), trigger.id);
      expect(after).toMatchObject({ lastFiredAt: null, lastProcessedItemId: null });
      expect(await session.fire(trigger.id)).toBeNull();
    });

    it("takes no item of another tenant, of a paused queue, or past its time", async () => {
      const trigger = await queueTrigger(stage(), { batchSize: 9 });
      const { queueId } = trigger;
      await stage().put(stage().job(queueId, { tenant: "globex" }));
      const [late = ""] = await stage().put(stage().job(queueId, { expiresInMs: 60_000 }));
      await stage().sql(
        "update millrace.job set expires_at = now() - interval '1 s' where id = $1",
        [late],
      );
      expect((await session.fire(trigger.id))?.jobIds).toEqual([]);
      await stage().put(stage().job(queueId));
      await stage().sql("update millrace.trigger set next_fire_at = now() where id = $1", [
        trigger.id,
      ]);
      await stage().sql("update millrace.queue set paused_at = now() where id = $1", [queueId]);
      expect((await session.fire(trigger.id))?.jobIds).toEqual([]);
    });

    it("puts no item into two jobs however many runners and triggers come at once", async () => {
      const first = await queueTrigger(stage(), { batchSize: 7, onArrival: true });
      const second = await queueTrigger(stage(), { ...first, name: `${first.name}-b` });
      await stage().sql("update millrace.trigger set queue_id = $2 where id = $1", [
        second.id,
        first.queueId,
      ]);
      const items = await stage().put(...stage().jobs(first.queueId, 100));
      const sessions = [1, 2, 3, 4].map(() => stage().store.triggerSession({ maxAttempts: 5 }));
      const fireAll = async (one: TriggerSession) => {
        for (let i = 0; i < 12; i++) {
          await one.fire(first.id);
          await one.fire(second.id);
        }
      };
      await Promise.all(sessions.map(fireAll));
      // A runner that finds a trigger in another's hands leaves it to them: some may be left.
      const left = () =>
        stage().sql("select from millrace.job where queue_id = $1 and claim_id is null limit 1", [
          first.queueId,
        ]);
      while ((await left()).length > 0) await session.fire(first.id);
      for (const one of sessions) await one.close();
      const taken: string[] = [];
      for (const id of await jobsIn(stage(), first.jobQueueId)) {
        const { payload } = await stage().find(id);
        taken.push(...(payload as { queue_item_ids: string[] }).queue_item_ids);
      }
      expect(taken.sort()).toEqual([...items].sort());
    });

    it("wants more at once only if it was asked to and its batch was full", async () => {
      const trigger = await queueTrigger(stage(), { batchSize: 2, onArrival: true });
      await stage().put(...stage().jobs(trigger.queueId, 3));
      expect(await session.fire(trigger.id)).toMatchObject({ items: 2, again: true });
      expect((await session.due(100)).map(({ id }) => id)).toContain(trigger.id);
      expect(await session.fire(trigger.id)).toMatchObject({ items: 1, again: false });
      expect((await session.due(100)).map(({ id }) => id)).not.toContain(trigger.id);
      expect((await session.waitForNext()).arrivals).toContain(trigger.queueId);
    });
  });

  describe("items that a job holds", () => {
    it("are claimed by nobody else and lapse with no lease", async () => {
      const { trigger, items } = await holding(2);
      expect(await stage().claim(trigger.queueId)).toEqual([]);
      await stage().sql("update millrace.claim set created_at = now() - interval '9 days'");
      await stage().sql(
        "update millrace.job set max_runtime_ms = 1, started_at = now() - interval '9 days' where id = any($1)",
        [items],
      );
      const lapsed = (await stage().upkeep.findLapsed()).flatMap(({ jobs }) => ids(jobs));
      expect(lapsed).not.toContain(items[0]);
      await stage().upkeep.forgetEnded();
      // Others may have left batches whose jobs have ended.
      await session.endBatches(100);
      expect(await session.endBatches(100)).toEqual([]);
      expect(await states(items)).toEqual(["running", "running"]);
    });

    it("stay with it when it is retried or given back", async () => {
      const { job, items, trigger } = await running(2);
      await stage().settle(job, retried(0));
      expect(await session.endBatches(100)).toEqual([]);
      await stage().promoteAll();
      const [again] = await stage().claim(trigger.jobQueueId);
      if (again !== undefined) await stage().settle(again, released);
      expect(await session.endBatches(100)).toEqual([]);
      expect(await states(items)).toEqual(["running", "running"]);
    });

    it("are completed with it", async () => {
      const { job, items, jobId, trigger } = await running(2);
      await stage().complete([job]);
      expect(await session.endBatches(100)).toEqual([{ jobId, items: 2 }]);
      expect(await states(items)).toEqual(["completed", "completed"]);
      expect((await stage().find(items[0] ?? "")).result).toEqual({ job_id: jobId });
      const counts = (await stage().store.counts([trigger.queueId])).get(trigger.queueId);
      expect(counts).toMatchObject({ enqueued: 2, completed: 2, depth: 0 });
      expect(await session.endBatches(100)).toEqual([]);
      expect(await stage().sql("select from millrace.claim where id = $1", [jobId])).toEqual([]);
    });

    it("die with it, with its error", async () => {
      const { job, items } = await running(2);
      await stage().settle(job, dead);
      await session.endBatches(100);
      const [first] = items;
      expect(await states(items)).toEqual(["dead", "dead"]);
      expect((await stage().find(first ?? "")).error).toMatchObject({ message: "broken" });
    });

    it.each(["cancelled", "deleted"] as const)("are cancelled when it is %s", async (how) => {
      const { jobId, items } = await holding(2);
      if (how === "cancelled") await stage().store.cancel(jobId, "not wanted");
      else await stage().store.delete(jobId, { reason: "not wanted", actor: "test" });
      await session.endBatches(100);
      expect(await states(items)).toEqual(["cancelled", "cancelled"]);
      const { timeline } = await stage().find(items[0] ?? "");
      expect(timeline.at(-1)?.message).toContain(`was ${how}`);
    });

    it("are dead letters when it expired before anybody ran it", async () => {
      const { jobId, items } = await holding(2);
      await stage().sql(
        "update millrace.job set expires_at = now() - interval '1 s' where id = $1",
        [jobId],
      );
      await stage().upkeep.expire(100, randomUUID());
      await session.endBatches(100);
      expect(await states(items)).toEqual(["dead", "dead"]);
    });

    it("end once, whichever runner sees it first", async () => {
      const { job, items } = await running(3);
      await stage().complete([job]);
      const sessions = [1, 2, 3, 4].map(() => stage().store.triggerSession({ maxAttempts: 5 }));
      const ended = await Promise.all(sessions.map((one) => one.endBatches(100)));
      for (const one of sessions) await one.close();
      expect(ended.flat()).toHaveLength(1);
      expect(await states(items)).toEqual(["completed", "completed", "completed"]);
    });

    it("can be cancelled: the one asked for does not come back to its queue", async () => {
      const { job, items } = await running(2);
      const [first = "", second = ""] = items;
      expect(await stage().store.cancel(first, null)).toBe("requested");
      expect(await settleItem(stage(), job, first, { kind: "released" })).toBe("cancelled");
      expect(await settleItem(stage(), job, second, { kind: "released" })).toBe("released");
      expect(await states(items)).toEqual(["cancelled", "ready"]);
      await stage().settle(job, cancelled);
    });

    it("outlive their trigger", async () => {
      const { job, items, trigger } = await running(1);
      await stage().store.triggers.delete(trigger.id);
      await stage().complete([job]);
      await session.endBatches(100);
      expect(await states(items)).toEqual(["completed"]);
    });
  });
};

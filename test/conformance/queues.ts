import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { cancelled, dead, released, retried, snoozed, type Topic } from "./stage.ts";

const repair = { actor: "me", reason: "test" };

export const queues: Topic = (stage) => {
  it("are made when first named, once, with defaults", async () => {
    const name = randomUUID();
    const made = await Promise.all(
      Array.from({ length: 5 }, () => stage().store.ensureQueues("t", [name, `${name}-b`])),
    );
    for (const list of made) expect(list).toEqual(made[0]);
    expect(made[0]?.[0]).toEqual({
      ...{ id: expect.any(Number), tenant: "t", name, description: null, isActive: true },
      ...{ paused: false, maxAttempts: null, enforceUniqueReference: false, capacity: null },
      ...{ warnDepth: null, retentionDays: 30, keyTtlSeconds: 2_592_000 },
      ...{ deadRetentionDays: null, timelineRetentionDays: null },
      ...{ fair: true, controlled: false, firstTenant: null, laned: false, ageingStepMs: null },
      ...{ concurrency: null, keyConcurrency: null, throttle: null, keyThrottle: null },
      ...{ deadLetterBlocksKey: false, rateLimit: null, tenantRateLimit: null },
      ...{ tenantCapacity: null },
    });
    const [other] = await stage().store.ensureQueues("u", [name]);
    expect(other?.id).not.toBe(made[0]?.[0]?.id);
  });

  it("change the settings they are given, and keep the others", async () => {
    const name = randomUUID();
    const settings = {
      ...{ description: 'a "quoted" one', isActive: false, maxAttempts: 9, capacity: 100 },
      ...{ enforceUniqueReference: true, warnDepth: 50, retentionDays: 3, keyTtlSeconds: 60 },
      ...{ deadRetentionDays: 90, timelineRetentionDays: 2 },
      ...{ fair: false, ageingStepMs: 500, concurrency: 3, keyConcurrency: 2 },
      ...{ throttle: { limit: 5, windowMs: 100 }, keyThrottle: { limit: 6, windowMs: 200 } },
      ...{ deadLetterBlocksKey: true, rateLimit: { limit: 7, windowMs: 300 } },
      ...{ tenantRateLimit: { limit: 8, windowMs: 400 } },
    };
    expect(await stage().store.configureQueue("", name, settings)).toMatchObject(settings);
    const changed = await stage().store.configureQueue("", name, { isActive: true });
    expect(changed).toMatchObject({ ...settings, isActive: true });
    const cleared = await stage().store.configureQueue("", name, {
      ...{ description: null, maxAttempts: null, capacity: null, warnDepth: null },
      ...{ ageingStepMs: null, concurrency: null, keyConcurrency: null, throttle: null },
      ...{ keyThrottle: null, rateLimit: null, tenantRateLimit: null },
      ...{ tenantCapacity: null },
    });
    expect(cleared).toMatchObject({
      ...{ description: null, maxAttempts: null, capacity: null, controlled: false },
      ...{ throttle: null, keyThrottle: null, rateLimit: null, tenantRateLimit: null },
      ...{ tenantCapacity: null },
    });
    expect((await stage().store.queues()).find((queue) => queue.name === name)).toEqual(cleared);
  });

  it("attach history for a retention of their own, so that the next completion finds it", async () => {
    const name = randomUUID();
    const { id } = await stage().store.configureQueue("", name, { retentionDays: 11 });
    const job = await stage().running(id);
    await stage().complete([job]);
    const rows = await stage().sql("select retention_days from millrace.history where id = $1", [
      job.id,
    ]);
    expect(rows).toEqual([{ retention_days: 11 }]);
  });

  it("are paused and resumed by name, and must exist for it", async () => {
    const name = randomUUID();
    await stage().store.ensureQueues("", [name]);
    expect((await stage().store.pauseQueue("", name, true)).paused).toBe(true);
    expect((await stage().store.pauseQueue("", name, true)).paused).toBe(true);
    expect((await stage().store.pauseQueue("", name, false)).paused).toBe(false);
    await expect(stage().store.pauseQueue("", "nowhere", true)).rejects.toMatchObject({
      code: "QUEUE_NOT_FOUND",
    });
  });

  it("count as a search of all tables would, whatever happened to their jobs", async () => {
    const queueId = await stage().queue();
    for (let i = 0; i < 5; i++) await someOfEverything(queueId);
    const counts = (await stage().store.counts([queueId])).get(queueId);
    const [row] = await stage().sql<Record<string, number>>(
      `with all_jobs as (
        select case when claim_id is null then 'ready' else 'running' end as state, queue_id from millrace.job
        union all select 'scheduled', queue_id from millrace.scheduled_job
        union all select state, queue_id from millrace.dead_job
        union all select state, queue_id from millrace.history)
      select count(*)::int as enqueued, count(*) filter (where state = 'completed')::int as completed,
        count(*) filter (where state in ('dead', 'discarded'))::int as dead,
        count(*) filter (where state in ('cancelled', 'expired', 'deleted'))::int as removed,
        count(*) filter (where state in ('ready', 'running', 'scheduled'))::int as depth
      from all_jobs where queue_id = $1`,
      [queueId],
    );
    expect(counts).toEqual({ ...row, retried: 5 });
    expect(row?.depth).toBeGreaterThan(0);
    expect(row?.removed).toBeGreaterThan(0);
  });

  async function someOfEverything(queueId: number) {
    const key = randomUUID();
    const keyed = () => stage().job(queueId, { key, requestHash: "aa", weight: -9 });
    await stage().named.flush([keyed(), keyed()], { notice: null });
    await stage().named.flush([keyed()], { notice: null });
    await stage().complete(await stage().claim(queueId, { limit: 1 }));
    for (const outcome of [retried(3_600_000), snoozed(3_600_000), released, cancelled, dead]) {
      const job = await stage().running(queueId, { weight: -9 });
      await stage().settle(job, outcome);
    }
    const [deleted, other] = [stage().job(queueId), stage().job(queueId, { delayMs: 3_600_000 })];
    await stage().put(deleted);
    await stage().put(other);
    await stage().store.delete(deleted.id, repair);
    await stage().store.cancel(other.id, null);
    const [letter] = await stage().store.deadLetters({}, 1);
    if (letter !== undefined) await stage().store.reprocess(letter.id, randomUUID(), repair);
    const tx = await stage().session();
    await stage().store.enqueueIn(tx, stage().jobs(queueId, 2), "ready");
    await tx.close();
  }

  it("are counted as empty when nothing was ever enqueued", async () => {
    const queueId = await stage().queue();
    expect((await stage().store.counts([queueId])).get(queueId)).toEqual({
      ...{ enqueued: 0, completed: 0, dead: 0, removed: 0, retried: 0, depth: 0 },
    });
  });
};

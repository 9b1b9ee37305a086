import { expect, it } from "vitest";
import { ids, retried, type Topic } from "./stage.ts";

export const promote: Topic = (stage) => {
  const makeDue = (jobIds: readonly string[], secondsAgo = 1) =>
    stage().sql(
      "update millrace.scheduled_job set due_at = now() - $2 * interval '1 s' where id = any($1)",
      [jobIds, secondsAgo],
    );

  it("makes due jobs ready, and only those", async () => {
    const queueId = await stage().queue();
    const [due, later] = stage().jobs(queueId, 2, { delayMs: 3_600_000, meta: { source: "s" } });
    if (due === undefined || later === undefined) return;
    await stage().put(due, later);
    const none = { promoted: 0, queueIds: [], latenessMs: [] };
    expect(await stage().upkeep.promote(100)).toEqual(none);
    await makeDue([due.id]);
    const one = { promoted: 1, queueIds: [queueId], latenessMs: [expect.any(Number)] };
    expect(await stage().upkeep.promote(100)).toEqual(one);
    expect(await stage().find(due.id)).toMatchObject({ state: "ready", meta: { source: "s" } });
    expect(await stage().stateOf(later.id)).toBe("scheduled");
    expect(ids(await stage().claim(queueId))).toEqual([due.id]);
  });

  it("keeps the order of the due times, up to its limit", async () => {
    const queueId = await stage().queue();
    const jobs = stage().jobs(queueId, 5, { delayMs: 3_600_000 });
    await stage().put(...jobs);
    for (const [i, job] of jobs.entries()) await makeDue([job.id], i + 1);
    expect((await stage().upkeep.promote(3)).promoted).toBe(3);
    expect((await stage().upkeep.promote(3)).promoted).toBe(2);
    expect(ids(await stage().claim(queueId))).toEqual(ids(jobs).reverse());
  });

  it("says by how much each job was late", async () => {
    const queueId = await stage().queue();
    const jobs = stage().jobs(queueId, 3, { delayMs: 3_600_000 });
    await stage().put(...jobs);
    for (const [i, job] of jobs.entries()) await makeDue([job.id], 60 * (i + 1));
    const { latenessMs } = await stage().upkeep.promote(10);
    const minutes = latenessMs.map((ms) => Math.floor(ms / 60_000)).sort((a, b) => a - b);
    expect(minutes).toEqual([1, 2, 3]);
    expect(latenessMs.every(Number.isInteger)).toBe(true);
  });

  it("promotes each job once however many sessions do it", async () => {
    const queueId = await stage().queue();
    const jobs = stage().jobs(queueId, 900, { delayMs: 3_600_000 });
    await stage().put(...jobs);
    await makeDue(ids(jobs));
    const sessions = [1, 2, 3].map(() => stage().store.upkeep());
    const counts = await Promise.all(
      sessions.map(async (session) => {
        let sum = 0;
        for (let promoted = -1; promoted !== 0; sum += promoted)
          promoted = (await session.promote(50)).promoted;
        return sum;
      }),
    );
    for (const session of sessions) await session.close();
    const rest = await stage().promoteAll();
    expect(counts.reduce((a, b) => a + b) + rest).toBe(900);
    expect(ids(await stage().claim(queueId, { limit: 1_000 })).sort()).toEqual(ids(jobs).sort());
  });

  it("passes over what another session has locked", async () => {
    const queueId = await stage().queue();
    const jobs = stage().jobs(queueId, 2, { delayMs: 3_600_000 });
    await stage().put(...jobs);
    await makeDue(ids(jobs));
    const other = await stage().session();
    await other.query("begin");
    await other.query("select from millrace.scheduled_job where id = $1 for update", [jobs[0]?.id]);
    expect((await stage().upkeep.promote(10)).promoted).toBe(1);
    await other.query("rollback");
    expect((await stage().upkeep.promote(10)).promoted).toBe(1);
    await other.close();
  });

  it("sends a job that was there when a process died to the suspects", async () => {
    const queueId = await stage().queue();
    const job = await stage().running(queueId);
    await stage().settle(job, retried(), true);
    await stage().promoteAll();
    expect(await stage().claim(queueId, { suspect: false })).toEqual([]);
    expect(await stage().claim(queueId)).toMatchObject([{ id: job.id, crashCount: 1 }]);
  });

  it("tells how long the next job has to wait", async () => {
    await stage().sql("delete from millrace.scheduled_job");
    expect(await stage().upkeep.waitForDue()).toBeNull();
    const queueId = await stage().queue();
    const job = stage().job(queueId, { delayMs: 3_600_000 });
    await stage().put(job);
    const wait = await stage().upkeep.waitForDue();
    expect(wait).toBeGreaterThan(3_000_000);
    expect(wait).toBeLessThanOrEqual(3_600_000);
    await makeDue([job.id]);
    expect(await stage().upkeep.waitForDue()).toBe(0);
  });

  it("ends what has expired while it waited, ready or scheduled, and nothing else", async () => {
    const queueId = await stage().queue();
    const lasting = { expiresInMs: 3_600_000 };
    const [ready, running, fine] = stage().jobs(queueId, 3, lasting);
    const scheduled = stage().job(queueId, { ...lasting, delayMs: 3_600_000 });
    const endless = stage().job(queueId, { weight: 9 });
    if (ready === undefined || running === undefined || fine === undefined) return;
    await stage().put(running);
    await stage().claim(queueId);
    await stage().put(ready, fine, endless);
    await stage().put(scheduled);
    const expired = ids([ready, running, scheduled]);
    for (const table of ["job", "scheduled_job"])
      await stage().sql(
        `update millrace.${table} set expires_at = now() - interval '1 s' where id = any($1)`,
        [expired],
      );
    expect(await stage().upkeep.expire(100, stage().process)).toBe(2);
    expect(await stage().upkeep.expire(100, stage().process)).toBe(0);
    const all = [ready, scheduled, running, fine, endless];
    const states = await Promise.all(ids(all).map((id) => stage().stateOf(id)));
    expect(states).toEqual(["expired", "expired", "running", "ready", "ready"]);
    const counts = (await stage().store.counts([queueId])).get(queueId);
    expect(counts).toMatchObject({ removed: 2, depth: 3 });
  });

  it("expires no more than its limit of each kind at a time", async () => {
    const queueId = await stage().queue();
    const jobs = stage().jobs(queueId, 5, { expiresInMs: 3_600_000 });
    await stage().put(...jobs);
    await stage().sql(
      "update millrace.job set expires_at = now() - interval '1 s' where id = any($1)",
      [ids(jobs)],
    );
    expect(await stage().upkeep.expire(3, stage().process)).toBe(3);
    expect(await stage().upkeep.expire(3, stage().process)).toBe(2);
  });
};

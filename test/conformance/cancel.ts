import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import type { Job } from "../../src/domain/job.ts";
import { dead, type Topic } from "./stage.ts";

const repair = { actor: "operator", reason: "tidying" };

export const cancelAndDelete: Topic = (stage) => {
  /** One job in each state a job can be in. */
  async function inEveryState(): Promise<Record<string, string>> {
    const queueId = await stage().queue();
    const scheduled = stage().job(queueId, { delayMs: 3_600_000 });
    const run = () => stage().running(queueId);
    const completed = await run();
    await stage().complete([completed], "1");
    const failed = await run();
    await stage().settle(failed, dead);
    const discarded = await run();
    await stage().settle(discarded, dead);
    await stage().store.discard(discarded.id, repair);
    const cancelledOne = stage().job(queueId);
    await stage().put(cancelledOne);
    await stage().store.cancel(cancelledOne.id, "before");
    const expired = stage().job(queueId, { expiresInMs: 3_600_000 });
    await stage().put(expired);
    await stage().sql("update millrace.job set expires_at = now() - interval '1 s' where id = $1", [
      expired.id,
    ]);
    await stage().upkeep.expire(100, stage().process);
    const running = await run();
    const ready = stage().job(queueId);
    await stage().put(ready);
    await stage().put(scheduled);
    return {
      ...{ scheduled: scheduled.id, ready: ready.id, running: running.id },
      ...{ completed: completed.id, dead: failed.id, discarded: discarded.id },
      ...{ cancelled: cancelledOne.id, expired: expired.id },
    };
  }

  async function afterEach(act: (id: string) => Promise<unknown>) {
    const before = await inEveryState();
    const seen: Record<string, unknown[]> = {};
    for (const [state, id] of Object.entries(before)) {
      expect(await stage().stateOf(id)).toBe(state);
      seen[state] = [await act(id), await stage().stateOf(id)];
    }
    return { seen, before };
  }

  it("cancels what waits, flags what runs, and leaves the rest", async () => {
    const { seen, before } = await afterEach((id) => stage().store.cancel(id, "enough"));
    expect(seen).toEqual({
      scheduled: ["cancelled", "cancelled"],
      ready: ["cancelled", "cancelled"],
      running: ["requested", "running"],
      completed: ["ended", "completed"],
      dead: ["ended", "dead"],
      discarded: ["ended", "discarded"],
      cancelled: ["ended", "cancelled"],
      expired: ["ended", "expired"],
    });
    expect(await stage().find(before.ready ?? "")).toMatchObject({ closedReason: "enough" });
    expect(await stage().find(before.running ?? "")).toMatchObject({ cancelRequested: true });
    expect(await stage().store.cancel(randomUUID(), null)).toBe("unknown");
  });

  it("may be asked to cancel a running job again", async () => {
    const job = await stage().running(await stage().queue());
    expect(await stage().store.cancel(job.id, null)).toBe("requested");
    expect(await stage().store.cancel(job.id, null)).toBe("requested");
  });

  it("deletes everything but what runs, once, keeping the record and an audit entry", async () => {
    const { seen, before } = await afterEach((id) => stage().store.delete(id, repair));
    const { running, ...others } = seen;
    expect(running).toEqual([false, "running"]);
    for (const answer of Object.values(others)) expect(answer).toEqual([true, "deleted"]);
    for (const [state, id] of Object.entries(before)) {
      expect(await stage().store.delete(id, repair)).toBe(false);
      const entries = await stage().sql(
        "select actor, action, reason from millrace.audit where target = $1 and action = 'job_delete'",
        [id],
      );
      const entry = { actor: "operator", action: "job_delete", reason: "tidying" };
      expect(entries).toEqual(state === "running" ? [] : [entry]);
    }
    expect(await stage().find(before.completed ?? "")).toMatchObject({
      ...{ payload: { n: 1 }, result: 1, closedReason: "tidying" },
      timeline: [{ outcome: "completed" }],
    });
    expect(await stage().store.delete(randomUUID(), repair)).toBe(false);
  });

  it("deletes a dead letter from long before the history that is kept", async () => {
    const job = await stage().running(await stage().queue());
    await stage().settle(job, dead);
    await stage().sql(
      "update millrace.dead_job set finished_at = finished_at - interval '400 days' where id = $1",
      [job.id],
    );
    expect(await stage().store.delete(job.id, repair)).toBe(true);
    expect(await stage().stateOf(job.id)).toBe("deleted");
  });

  it("refuses every further act on a deleted job", async () => {
    const queueId = await stage().queue();
    const job = stage().job(queueId);
    await stage().put(job);
    await stage().store.delete(job.id, repair);
    expect(await stage().store.cancel(job.id, null)).toBe("ended");
    const refused = expect.objectContaining({ code: "ILLEGAL_TRANSITION" });
    await expect(stage().store.reprocess(job.id, randomUUID(), repair)).rejects.toEqual(refused);
    await expect(stage().store.discard(job.id, repair)).rejects.toEqual(refused);
  });

  it("decides between a cancel and a claim that come at the same time", async () => {
    const queueId = await stage().queue();
    const jobs = stage().jobs(queueId, 60);
    await stage().put(...jobs);
    const claiming = (async () => {
      const claimed = [];
      for (let i = 0; i < 12; i++) claimed.push(...(await stage().claim(queueId, { limit: 5 })));
      return claimed;
    })();
    const answers = await Promise.all(
      jobs.map(async ({ id }) => [id, await stage().store.cancel(id, null)] as const),
    );
    const claimed = new Set((await claiming).map(({ id }) => id));
    for (const [id, answer] of answers) {
      expect(answer).toBe(claimed.has(id) ? "requested" : "cancelled");
      const expected: Partial<Job> = claimed.has(id)
        ? { state: "running", cancelRequested: true }
        : { state: "cancelled" };
      expect(await stage().find(id)).toMatchObject(expected);
    }
  });
};

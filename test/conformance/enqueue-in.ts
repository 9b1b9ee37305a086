import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { ids, type Topic } from "./stage.ts";

export const enqueueInTransaction: Topic = (stage) => {
  it("shows the jobs with the caller's commit, and not before", async () => {
    const queueId = await stage().queue();
    const jobs = [stage().job(queueId), stage().job(queueId, { delayMs: 60_000 })];
    const tx = await stage().session();
    await tx.query("begin");
    const answers = await stage().store.enqueueIn(tx, jobs, `ready ${queueId}`);
    expect(answers).toEqual(jobs.map(({ id }) => ({ id, existing: false })));
    expect(await stage().store.find(ids(jobs))).toEqual([]);
    await tx.query("commit");
    expect(await stage().stateOf(jobs[0]?.id ?? "")).toBe("ready");
    expect(await stage().stateOf(jobs[1]?.id ?? "")).toBe("scheduled");
    await tx.close();
  });

  it("leaves nothing behind after the caller's rollback, names included", async () => {
    const queueId = await stage().queue();
    const key = randomUUID();
    const job = stage().job(queueId, { key, requestHash: "aa" });
    const tx = await stage().session();
    await tx.query("begin");
    await stage().store.enqueueIn(tx, [job], "ready");
    await tx.query("rollback");
    await tx.close();
    expect(await stage().store.find([job.id])).toEqual([]);
    expect(await stage().store.findByKey("acme", key)).toBeNull();
    expect((await stage().store.counts([queueId])).get(queueId)?.enqueued).toBe(0);
  });

  it("keeps the rules for names, and leaves the transaction usable after a refusal", async () => {
    const queueId = await stage().queue();
    const [key, reference] = [randomUUID(), randomUUID()];
    const first = stage().job(queueId, { key, requestHash: "aa" });
    const owner = stage().job(queueId, { reference, uniqueReference: true });
    const half = stage().job(queueId, {
      key: randomUUID(),
      requestHash: "aa",
      reference,
      uniqueReference: true,
    });
    const tx = await stage().session();
    await tx.query("begin");
    await stage().store.enqueueIn(tx, [first, owner], "ready");
    const answers = await stage().store.enqueueIn(
      tx,
      [
        stage().job(queueId, { key, requestHash: "aa" }),
        stage().job(queueId, { key, requestHash: "bb" }),
        half,
      ],
      "ready",
    );
    expect(answers).toEqual([
      { id: first.id, existing: true },
      expect.objectContaining({ code: "IDEMPOTENCY_CONFLICT" }),
      expect.objectContaining({ code: "REFERENCE_TAKEN" }),
    ]);
    await tx.query("commit");
    await tx.close();
    expect(ids(await stage().claim(queueId))).toEqual([first.id, owner.id]);
    expect(await stage().store.findByKey("acme", half.key ?? "")).toBeNull();
  });

  it("takes a driver that answers with the rows themselves", async () => {
    const queueId = await stage().queue();
    const job = stage().job(queueId);
    const session = await stage().session();
    const tx = {
      query: async (text: string, values: unknown[]) => (await session.query(text, values)).rows,
    };
    await stage().store.enqueueIn(tx, [job], "ready");
    await session.close();
    expect(await stage().stateOf(job.id)).toBe("ready");
  });

  it("keeps first in, first out across batches of the largest size", async () => {
    const queueId = await stage().queue();
    const jobs = stage().jobs(queueId, 2_001);
    const session = await stage().session();
    for (let from = 0; from < jobs.length; from += 1_000)
      await stage().store.enqueueIn(session, jobs.slice(from, from + 1_000), "ready");
    await session.close();
    expect(ids(await stage().claim(queueId, { limit: 3_000 }))).toEqual(ids(jobs));
  });
};

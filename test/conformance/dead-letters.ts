import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import type { NewJob } from "../../src/store/store.ts";
import { dead, type Ending, failure, ids, type Topic } from "./stage.ts";

const repair = { actor: "operator", reason: "fixed the cause" };
const refused = expect.objectContaining({ code: "ILLEGAL_TRANSITION" });

export const deadLetters: Topic = (stage) => {
  const deadJob = async (
    queueId: number,
    options: Partial<NewJob> = {},
    outcome: Ending = dead,
  ): Promise<string> => {
    const job = await stage().running(queueId, options);
    await stage().settle(job, outcome);
    return job.id;
  };
  const auditOf = (id: string) =>
    stage().sql<{ action: string }>(
      "select action, actor, reason, details from millrace.audit where target = $1 order by id",
      [id],
    );
  const nameOf = async (queueId: number) =>
    (await stage().store.queues()).find(({ id }) => id === queueId)?.name ?? "";

  it("are listed by queue, tenant, type, fingerprint and id, the oldest first", async () => {
    const [one, two] = [await stage().queue(), await stage().queue()];
    const first = await deadJob(one, { type: "a" });
    const second = await deadJob(one, { tenant: "other" });
    const odd: Ending = { kind: "dead", error: { ...failure, fingerprint: "0dd" } };
    const third = await deadJob(two, {}, odd);
    const list = async (filter: object, limit = 10) =>
      ids(await stage().store.deadLetters(filter, limit));
    expect(await list({ queue: await nameOf(one) })).toEqual([first, second]);
    expect(await list({ queue: await nameOf(one) }, 1)).toEqual([first]);
    expect(await list({ queue: await nameOf(one), tenant: "other" })).toEqual([second]);
    expect(await list({ type: "a" })).toEqual([first]);
    expect(await list({ fingerprint: "0dd" })).toEqual([third]);
    expect(await list({ ids: [first, third] })).toEqual([first, third]);
    expect(await list({ queue: "nowhere" })).toEqual([]);
  });

  it("are reprocessed as a new job that is linked to the old one, which stays", async () => {
    const queueId = await stage().queue();
    const id = await deadJob(queueId, {
      ...{ weight: 2, maxAttempts: 3, maxRuntimeMs: 777, reference: "r", correlationId: "corr" },
      ...{ payload: '{"deep":[1,{"x":null}]}', meta: { category: "sync", payloadVersion: "2.0" } },
    });
    const newId = randomUUID();
    const made = await stage().store.reprocess(id, newId, repair);
    expect(made.id).toBe(newId);
    expect(made.idempotencyKey).toMatch(new RegExp(`^${id}_retry_\\d+$`));
    expect(await stage().find(newId)).toMatchObject({
      ...{ state: "ready", attempt: 0, crashCount: 0, weight: 2, maxAttempts: 3, timeline: [] },
      ...{ payload: { deep: [1, { x: null }] }, reference: "r", correlationId: "corr" },
      meta: { category: "sync", payloadVersion: "2.0", reprocessOf: id },
      idempotencyKey: made.idempotencyKey,
    });
    expect(await stage().find(id)).toMatchObject({
      ...{ state: "dead", reprocessedAs: newId, closedReason: repair.reason },
      error: { message: "broken", stack: "at x" },
    });
    expect(await stage().claim(queueId)).toMatchObject([{ id: newId, maxRuntimeMs: 777 }]);
    expect((await stage().store.counts([queueId])).get(queueId)).toMatchObject({
      ...{ enqueued: 2, dead: 1, depth: 1 },
    });
  });

  it("leave an audit entry for the request and one for its success", async () => {
    const id = await deadJob(await stage().queue());
    const newId = randomUUID();
    await stage().store.reprocess(id, newId, repair);
    expect(await auditOf(id)).toMatchObject([
      { action: "job_dlq_reprocess_requested", ...repair },
      { action: "job_dlq_reprocess_success", ...repair, details: { new_job_id: newId } },
    ]);
  });

  it("are correlated by the old job's id when they had no correlation of their own", async () => {
    const id = await deadJob(await stage().queue());
    const newId = randomUUID();
    await stage().store.reprocess(id, newId, repair);
    expect((await stage().find(newId)).correlationId).toBe(id);
  });

  it("are reprocessed only once, also when two ask at the same time", async () => {
    const id = await deadJob(await stage().queue());
    const attempts = await Promise.allSettled(
      Array.from({ length: 4 }, () => stage().store.reprocess(id, randomUUID(), repair)),
    );
    const won = attempts.filter(({ status }) => status === "fulfilled");
    expect(won).toHaveLength(1);
    for (const attempt of attempts)
      if (attempt.status === "rejected") expect(attempt.reason).toEqual(refused);
    expect(await auditOf(id)).toHaveLength(2);
    await expect(stage().store.discard(id, repair)).rejects.toEqual(refused);
    expect(ids(await stage().store.deadLetters({ ids: [id] }, 10))).toEqual([]);
  });

  it("pass a unique reference on to the new job", async () => {
    const queueId = await stage().queue();
    const reference = randomUUID();
    const unique = { reference, uniqueReference: true };
    await stage().named.flush([stage().job(queueId, unique)], { notice: null });
    const [job] = await stage().claim(queueId);
    if (job === undefined) throw new Error("nothing was claimed");
    await stage().settle(job, dead);
    const newId = randomUUID();
    await stage().store.reprocess(job.id, newId, repair);
    const again = await stage().named.flush([stage().job(queueId, unique)], { notice: null });
    expect(again.answers).toMatchObject([
      { code: "REFERENCE_TAKEN", details: { existingId: newId } },
    ]);
  });

  it("are not the only jobs to reprocess: cancelled and expired ones are too, others are not", async () => {
    const queueId = await stage().queue();
    const waiting = stage().job(queueId);
    await stage().put(waiting);
    await expect(stage().store.reprocess(waiting.id, randomUUID(), repair)).rejects.toEqual(
      refused,
    );
    await stage().store.cancel(waiting.id, null);
    const newId = randomUUID();
    await stage().store.reprocess(waiting.id, newId, repair);
    expect(await stage().find(waiting.id)).toMatchObject({
      ...{ state: "cancelled", reprocessedAs: newId },
    });
    await expect(stage().store.reprocess(waiting.id, randomUUID(), repair)).rejects.toEqual(
      refused,
    );
    const [again] = await stage().claim(queueId);
    if (again === undefined) throw new Error("nothing was claimed");
    await stage().complete([again]);
    await expect(stage().store.reprocess(again.id, randomUUID(), repair)).rejects.toEqual(refused);
  });

  it("are discarded once, with a reason, and then neither listed nor reprocessed", async () => {
    const id = await deadJob(await stage().queue());
    await stage().store.discard(id, repair);
    expect(await stage().find(id)).toMatchObject({
      ...{ state: "discarded", closedReason: repair.reason, error: { message: "broken" } },
    });
    expect(await auditOf(id)).toMatchObject([{ action: "job_dlq_discard", ...repair }]);
    expect(await stage().store.deadLetters({ ids: [id] }, 10)).toEqual([]);
    await expect(stage().store.discard(id, repair)).rejects.toEqual(refused);
    await expect(stage().store.reprocess(id, randomUUID(), repair)).rejects.toEqual(refused);
  });

  it("must exist and be dead to be discarded", async () => {
    const unknown = expect.objectContaining({ code: "JOB_NOT_FOUND" });
    await expect(stage().store.discard(randomUUID(), repair)).rejects.toEqual(unknown);
    await expect(stage().store.reprocess(randomUUID(), randomUUID(), repair)).rejects.toEqual(
      unknown,
    );
    const job = await stage().running(await stage().queue());
    await expect(stage().store.discard(job.id, repair)).rejects.toEqual(refused);
  });
};

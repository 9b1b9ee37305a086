// Idempotency keys and unique references.

import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import type { MillraceError } from "../../src/domain/errors.ts";
import type { Enqueued, Flushed, NewJob } from "../../src/store/store.ts";
import { ids, type Topic } from "./stage.ts";

const conflict = expect.objectContaining({ code: "IDEMPOTENCY_CONFLICT" });
const taken = expect.objectContaining({ code: "REFERENCE_TAKEN" });

export const names: Topic = (stage) => {
  const flush = async (...jobs: NewJob[]): Promise<readonly (Enqueued | Error)[]> =>
    (await stage().named.flush(jobs, { notice: null })).answers;
  const keyed = (queueId: number, key: string, requestHash = "aa") =>
    stage().job(queueId, { key, requestHash });
  const referenced = (queueId: number, reference: string, options: Partial<NewJob> = {}) =>
    stage().job(queueId, { reference, uniqueReference: true, ...options });
  const fresh = (job: NewJob) => ({ id: job.id, existing: false });
  const old = (job: NewJob) => ({ id: job.id, existing: true });

  it("answers the same request with the same job, and a different one with a conflict", async () => {
    const queueId = await stage().queue();
    const key = randomUUID();
    const [first, same, different] = [
      keyed(queueId, key, "aa"),
      keyed(queueId, key, "aa"),
      keyed(queueId, key, "bb"),
    ];
    expect(await flush(first)).toEqual([fresh(first)]);
    expect(await flush(same)).toEqual([old(first)]);
    expect(await flush(different)).toEqual([conflict]);
    expect(ids(await stage().claim(queueId))).toEqual([first.id]);
    expect(await stage().store.findByKey("acme", key)).toBe(first.id);
  });

  it("remembers the key when the job has ended, and forgets it when the job is deleted", async () => {
    const queueId = await stage().queue();
    const key = randomUUID();
    const first = keyed(queueId, key);
    await flush(first);
    await stage().complete(await stage().claim(queueId));
    expect(await flush(keyed(queueId, key))).toEqual([old(first)]);
    await stage().store.delete(first.id, { actor: "me", reason: "test" });
    const second = keyed(queueId, key);
    expect(await flush(second)).toEqual([fresh(second)]);
  });

  it("keeps tenants' keys apart", async () => {
    const queueId = await stage().queue();
    const key = randomUUID();
    const mine = keyed(queueId, key);
    const theirs = { ...keyed(queueId, key), tenant: "other" };
    expect(await flush(mine, theirs)).toEqual([fresh(mine), fresh(theirs)]);
  });

  it("judges twins in one batch beside each other", async () => {
    const queueId = await stage().queue();
    const key = randomUUID();
    const [first, same, different] = [
      keyed(queueId, key, "aa"),
      keyed(queueId, key, "aa"),
      keyed(queueId, key, "bb"),
    ];
    expect(await flush(first, same, different)).toEqual([fresh(first), old(first), conflict]);
    expect(ids(await stage().claim(queueId))).toEqual([first.id]);
  });

  it("judges a twin by itself when the first of them was refused", async () => {
    const queueId = await stage().queue();
    const [key, reference] = [randomUUID(), randomUUID()];
    const stored = keyed(queueId, key, "aa");
    await flush(stored);
    const other = keyed(queueId, key, "bb");
    const same = keyed(queueId, key, "aa");
    expect(await flush(other, same)).toEqual([conflict, old(stored)]);
    // Refused for its key, the first does not take the reference from the second.
    const refused = referenced(queueId, reference, { key, requestHash: "bb" });
    const innocent = referenced(queueId, reference, { key: randomUUID(), requestHash: "cc" });
    expect(await flush(refused, innocent)).toEqual([conflict, fresh(innocent)]);
    expect(ids(await stage().claim(queueId))).toEqual([stored.id, innocent.id]);
  });

  it("lets an expired key be used again", async () => {
    const queueId = await stage().queue();
    const key = randomUUID();
    const first = keyed(queueId, key, "aa");
    await flush(first);
    await stage().sql(
      "update millrace.unique_name set expires_at = now() - interval '1 s' where key = $1",
      [key],
    );
    const second = keyed(queueId, key, "bb");
    expect(await flush(second)).toEqual([fresh(second)]);
    expect(await flush(keyed(queueId, key, "bb"))).toEqual([old(second)]);
    expect(ids(await stage().claim(queueId))).toEqual([first.id, second.id]);
  });

  it("lets a key live as long as its queue says", async () => {
    const queueId = await stage().queue();
    const queue = (await stage().store.queues()).find(({ id }) => id === queueId);
    await stage().store.configureQueue("", queue?.name ?? "", { keyTtlSeconds: 120 });
    const key = randomUUID();
    await flush(keyed(queueId, key));
    const [row] = await stage().sql<{ seconds: number }>(
      "select extract(epoch from expires_at - now())::float8 as seconds from millrace.unique_name where key = $1",
      [key],
    );
    expect(row?.seconds).toBeGreaterThan(60);
    expect(row?.seconds).toBeLessThanOrEqual(120);
  });

  it("gives a unique reference to one job of a queue", async () => {
    const [queueId, otherId] = [await stage().queue(), await stage().queue()];
    const reference = randomUUID();
    const first = referenced(queueId, reference);
    const elsewhere = referenced(otherId, reference);
    expect(await flush(first, elsewhere)).toEqual([fresh(first), fresh(elsewhere)]);
    const [answer] = await flush(referenced(queueId, reference));
    expect(answer).toEqual(taken);
    expect(answer).toMatchObject({ details: { existingId: first.id } });
    const plain = stage().job(queueId, { reference });
    expect(await flush(plain)).toEqual([fresh(plain)]);
  });

  it("leaves no key behind for a job whose reference was taken", async () => {
    const queueId = await stage().queue();
    const [key, reference] = [randomUUID(), randomUUID()];
    await flush(referenced(queueId, reference));
    const half = referenced(queueId, reference, { key, requestHash: "aa" });
    expect(await flush(half)).toEqual([taken]);
    expect(await stage().store.findByKey("acme", key)).toBeNull();
    expect(await stage().store.find([half.id])).toEqual([]);
    const whole = keyed(queueId, key, "bb");
    expect(await flush(whole)).toEqual([fresh(whole)]);
  });

  it("refuses at once what an open transaction holds, and takes it when that was rolled back", async () => {
    const queueId = await stage().queue();
    const key = randomUUID();
    const job = keyed(queueId, key);
    const other = await stage().session();
    await other.query("begin");
    await stage().store.enqueueIn(other, [keyed(queueId, key)], "ready");
    await expect(flush(job)).rejects.toMatchObject({ code: "KEY_BUSY" });
    await other.query("rollback");
    expect(await flush(job)).toEqual([fresh(job)]);
    await other.close();
  });

  it("gives a key asked for by many at once to one of them", async () => {
    const queueId = await stage().queue();
    const key = randomUUID();
    const jobs = Array.from({ length: 8 }, () => keyed(queueId, key));
    const sessions = jobs.map(() => stage().store.producer("named"));
    // Whoever waits too long for the others is told so, and asks again.
    const ask = async (i: number): Promise<Flushed | undefined> => {
      try {
        return await sessions[i]?.flush(jobs.slice(i, i + 1), { notice: null });
      } catch (error) {
        if ((error as MillraceError).code !== "KEY_BUSY") throw error;
        return ask(i);
      }
    };
    const answers = await Promise.all([...jobs.keys()].map(ask));
    const [winner] = await stage().claim(queueId);
    for (const [i, answer] of answers.entries()) {
      const existing = jobs[i]?.id !== winner?.id;
      expect(answer?.answers).toEqual([{ id: winner?.id, existing }]);
    }
    for (const session of sessions) await session.close();
  });
};

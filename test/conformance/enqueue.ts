import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import type { NewJob } from "../../src/store/store.ts";
import { ids, type Topic } from "./stage.ts";

export const enqueue: Topic = (stage) => {
  it("stores a job with all it was given, and defaults to its own id for what was not", async () => {
    const queueId = await stage().queue();
    const plain = stage().job(queueId);
    const full = stage().job(queueId, {
      weight: -3,
      maxAttempts: 7,
      payload: '{"text":"a\\"b\\\\c, {NULL} \\u0000 😀"}',
      correlationId: 'c"\\,{}',
      reference: "NULL",
      maxRuntimeMs: 1_000,
      expiresInMs: 60_000,
      meta: { category: "sync", source: "it's" },
    });
    await stage().put(plain, full);
    expect(await stage().find(plain.id)).toMatchObject({
      state: "ready",
      attempt: 0,
      correlationId: plain.id,
      idempotencyKey: plain.id,
      reference: null,
      expiresAt: null,
      meta: {},
      timeline: [],
      payload: { n: 1 },
    });
    const stored = await stage().find(full.id);
    expect(stored).toMatchObject({
      weight: -3,
      maxAttempts: 7,
      payload: { text: 'a"b\\c, {NULL} \u0000 😀' },
      correlationId: 'c"\\,{}',
      reference: "NULL",
      meta: { category: "sync", source: "it's" },
    });
    expect(stored.expiresAt).not.toBeNull();
  });

  it("stores each job of a flush with what is its own, whatever the others have in common", async () => {
    const [queueId, other] = [await stage().queue(), await stage().queue()];
    const columns: Partial<NewJob>[] = [
      ...[{ queueId: other }, { weight: 7 }, { maxAttempts: 9 }, { type: 'other "type"' }],
      ...[{ tenant: "b, {c}" }, { expiresInMs: 60_000 }, { maxRuntimeMs: 1_000 }],
      ...[{ correlationId: "NULL" }, { reference: 'r"\\' }, { meta: { source: "a\nb" } }],
      ...[{ tenantSlot: 3 }, { lane: 5 }],
    ];
    // Every column alone, and then more and more of them: more shapes than a process keeps statements for.
    const shapes = [
      ...columns,
      ...columns.map((_, i) => Object.assign({}, ...columns.slice(0, i + 1))),
      ...columns.map((_, i) => Object.assign({}, ...columns.slice(i))),
    ];
    for (const own of shapes) {
      const jobs = [stage().job(queueId), stage().job(queueId, own), stage().job(queueId, own)];
      await stage().put(...jobs);
      const rows = await stage().sql(
        `select queue_id as "queueId", weight, max_attempts as "maxAttempts", type, tenant,
          extract(epoch from expires_at - created_at)::int * 1000 as "expiresInMs", max_runtime_ms as "maxRuntimeMs",
          correlation_id as "correlationId", reference, meta, tenant_slot as "tenantSlot", lane
        from millrace.job where id = any ($1) order by seq`,
        [jobs.map(({ id }) => id)],
      );
      const common = { correlationId: null, reference: null, meta: null, tenantSlot: 0, lane: 0 };
      const [{ queueId: first, weight, maxAttempts, type, tenant }] = jobs as [NewJob];
      const plain = { queueId: first, weight, maxAttempts, type, tenant, ...common };
      const expected = { ...plain, expiresInMs: null, maxRuntimeMs: null };
      expect(rows).toEqual([expected, { ...expected, ...own }, { ...expected, ...own }]);
    }
  });

  it("keeps a job with a delay apart until it is due", async () => {
    const queueId = await stage().queue();
    const job = stage().job(queueId, { delayMs: 3_600_000 });
    await stage().put(job);
    const stored = await stage().find(job.id);
    expect(stored.state).toBe("scheduled");
    expect(Number(stored.dueAt) - Number(stored.createdAt)).toBe(3_600_000);
    expect(await stage().claim(queueId)).toEqual([]);
  });

  it("answers each job of a large flush, in order", async () => {
    const queueId = await stage().queue();
    const jobs = stage().jobs(queueId, 1_000);
    expect(await stage().put(...jobs)).toEqual(ids(jobs));
    expect(ids(await stage().claim(queueId, { limit: 1_000 }))).toEqual(ids(jobs));
  });

  it("keeps the order of a named flush too", async () => {
    const queueId = await stage().queue();
    const jobs = [3, 1, 2].map((n) => stage().job(queueId, { key: `k-${randomUUID()}-${n}` }));
    const { answers } = await stage().named.flush(jobs, { notice: null });
    expect(answers).toEqual(jobs.map(({ id }) => ({ id, existing: false })));
    expect(ids(await stage().claim(queueId))).toEqual(ids(jobs));
  });

  // Jobs that differ in id and payload only go in by a statement of their own.
  const kinds = { "jobs that are alike": {}, "jobs that are not": { correlationId: "c" } };
  for (const [kind, options] of Object.entries(kinds)) {
    it(`claims the first of ${kind} at once for a worker that waits for them`, async () => {
      const queueId = await stage().queue();
      const jobs = stage().jobs(queueId, 3, options);
      const claim = {
        claimId: jobs[0]?.id ?? "",
        leaseId: await stage().openLease(),
        count: 2,
        hints: [{ queueId, weight: 5, afterSeq: 0 }],
        queueIds: [queueId],
      };
      const flushed = await stage().ready.flush(jobs, { notice: null, claim });
      expect(flushed.claimedAt).toBeInstanceOf(Date);
      const replayed = await stage().worker.replay(claim.claimId);
      expect(ids(replayed.jobs)).toEqual(ids(jobs.slice(0, 2)));
      expect(replayed.jobs.map(({ attempt, token }) => [attempt, token.claimNo])).toEqual([
        [1, 1],
        [1, 1],
      ]);
      expect(flushed.lastSeq).toBe(replayed.jobs.at(-1)?.seq);
      expect(await stage().complete(replayed.jobs)).toBe(2);
      expect(ids(await stage().claim(queueId))).toEqual([jobs[2]?.id]);
    });

    for (const [named, claimId] of [
      ["its own id", undefined],
      ["another", randomUUID()],
    ])
      it(`claims one of ${kind} under ${named}`, async () => {
        const queueId = await stage().queue();
        const job = stage().job(queueId, options);
        const claim = {
          ...{ claimId: claimId ?? job.id, leaseId: await stage().openLease(), count: 1 },
          ...{ hints: [{ queueId, weight: 5, afterSeq: 0 }], queueIds: [queueId] },
        };
        const flushed = await stage().ready.flush([job], { notice: null, claim });
        const { jobs } = await stage().worker.replay(claim.claimId);
        expect(jobs).toMatchObject([{ id: job.id, token: { claimId: claim.claimId, claimNo: 1 } }]);
        expect(jobs[0]?.seq).toBe(flushed.lastSeq);
        expect(await stage().complete(jobs)).toBe(1);
        expect(await stage().claim(queueId)).toEqual([]);
      });

    it(`claims none of ${kind} at once when an older job is ready, or the queue is paused`, async () => {
      const queueId = await stage().queue();
      const older = stage().job(queueId);
      await stage().put(older);
      const claim = async (claimId: string) => ({
        claimId,
        leaseId: await stage().openLease(),
        count: 1,
        hints: [{ queueId, weight: 5, afterSeq: 0 }],
        queueIds: [queueId],
      });
      const flush = async () => {
        const job = stage().job(queueId, options);
        return stage().ready.flush([job], { notice: null, claim: await claim(job.id) });
      };
      expect((await flush()).claimedAt).toBeNull();
      await stage().claim(queueId);
      const queue = (await stage().store.queues()).find(({ id }) => id === queueId);
      await stage().store.pauseQueue("", queue?.name ?? "", true);
      expect((await flush()).claimedAt).toBeNull();
    });
  }

  it("stores an all-or-nothing flush wholly or not at all", async () => {
    const queueId = await stage().queue();
    const key = randomUUID();
    await stage().named.flush([stage().job(queueId, { key, requestHash: "aa" })], { notice: null });
    const jobs = [
      stage().job(queueId),
      stage().job(queueId, { key, requestHash: "bb" }),
      stage().job(queueId, { delayMs: 1_000 }),
    ];
    const flushed = stage().named.flush(jobs, { notice: null, atomic: true });
    await expect(flushed).rejects.toMatchObject({ code: "IDEMPOTENCY_CONFLICT" });
    expect(await stage().store.find(ids(jobs))).toEqual([]);
    // The session goes on with the flush number it had.
    const next = stage().job(queueId);
    await stage().named.flush([next], { notice: null });
    expect(await stage().stateOf(next.id)).toBe("ready");
  });

  it("does not find what was never stored", async () => {
    expect(await stage().store.find([randomUUID()])).toEqual([]);
    expect(await stage().store.findByKey("acme", randomUUID())).toBeNull();
  });
};

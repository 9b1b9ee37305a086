import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { type Claim, completionOf, ids, retried, type Stage, type Topic } from "./stage.ts";

export const claim: Topic = (stage) => {
  const nameOf = async (queueId: number) =>
    (await stage().store.queues()).find(({ id }) => id === queueId)?.name ?? "";

  it("takes the lower weight first and keeps first in, first out inside it", async () => {
    const queueId = await stage().queue();
    const [low, high] = [{ weight: 9 }, { weight: -2 }];
    const first = [
      stage().job(queueId, low),
      stage().job(queueId, high),
      stage().job(queueId, low),
      stage().job(queueId, high),
    ];
    const second = [stage().job(queueId, high), stage().job(queueId, low)];
    await stage().put(...first);
    await stage().put(...second);
    const expected = [first[1], first[3], second[0], first[0], first[2], second[1]];
    const claimed = await stage().claim(queueId);
    expect(ids(claimed)).toEqual(expected.map((job) => job?.id));
    expect(claimed.every((job, i) => i === 0 || job.weight >= (claimed[i - 1]?.weight ?? 0))).toBe(
      true,
    );
  });

  it("marks what it takes: attempt, claim number, token and start", async () => {
    const queueId = await stage().queue();
    const options = { maxRuntimeMs: 5_000, reference: "r", correlationId: "c", maxAttempts: 4 };
    const job = await stage().running(queueId, options);
    expect(job).toMatchObject({
      attempt: 1,
      crashCount: 0,
      queueId,
      type: "work",
      tenant: "acme",
      payload: { n: 1 },
      ...options,
    });
    expect(job.token.claimNo).toBe(1);
    expect(job.startedAt.getTime()).toBeGreaterThanOrEqual(job.createdAt.getTime());
    expect(await stage().find(job.id)).toMatchObject({ state: "running", attempt: 1 });
    expect(await stage().claim(queueId)).toEqual([]);
  });

  it("tells of each job what is its own, however unlike the one before", async () => {
    const queueId = await stage().queue();
    const work = { type: "work", tenant: "acme", maxAttempts: 5 };
    const kinds = [
      ...[work, { ...work, maxAttempts: 1 }],
      { type: "work", tenant: "globex", maxAttempts: 1 },
      { type: "other", tenant: "globex", maxAttempts: 7 },
    ];
    const jobs = [...kinds, ...kinds, ...kinds].map((kind) => stage().job(queueId, kind));
    await stage().put(...jobs);
    const hint = { queueId, weight: 5, afterSeq: 0 };
    const ways = [null, [hint], [hint, { ...hint, weight: 6 }]];
    const claimed: Claim[] = [];
    for (const hints of [...ways, null])
      claimed.push(...(await stage().claim(queueId, { hints, limit: 3 })));
    const told = ({ id, type, tenant, maxAttempts }: ReturnType<Stage["job"]> | Claim) =>
      [id, type, tenant, maxAttempts].join();
    expect(claimed.map(told)).toEqual(jobs.map(told));
    for (const { attempt, crashCount, token } of claimed)
      expect([attempt, crashCount, token.claimNo]).toEqual([1, 0, 1]);
  });

  it("serves several queues at once, up to the limit", async () => {
    const [one, two] = [await stage().queue(), await stage().queue()];
    const jobs = [...stage().jobs(one, 5), ...stage().jobs(two, 5)];
    await stage().put(...jobs, stage().job(two, { weight: 8 }));
    const first = await stage().claim([one, two], { limit: 7 });
    const rest = await stage().claim([one, two], { limit: 7 });
    expect([first.length, rest.length]).toEqual([7, 4]);
    const queueOf = new Map(jobs.map(({ id, queueId }) => [id, queueId]));
    for (const { id, queueId, weight } of [...first, ...rest])
      expect([queueId, weight]).toEqual(queueOf.has(id) ? [queueOf.get(id), 5] : [two, 8]);
  });

  it("passes over what somebody else is just taking, however it looks", async () => {
    const queueId = await stage().queue();
    const hint = { queueId, weight: 5, afterSeq: 0 };
    const ways = [null, [hint], [hint, { ...hint, weight: 6 }]];
    for (const hints of ways) {
      await stage().put(...stage().jobs(queueId, 4));
      const other = await stage().session();
      await other.query("begin");
      const { rows } = await other.query(
        `select id from millrace.job where queue_id = ${queueId} and claim_id is null order by seq limit 2 for update`,
      );
      const claimed = await stage().claim(queueId, { hints });
      expect(claimed).toHaveLength(2);
      expect(ids(claimed)).not.toEqual(expect.arrayContaining([rows[0]?.id]));
      await other.query("rollback");
      await other.close();
      expect(await stage().claim(queueId)).toHaveLength(2);
    }
  });

  it("takes the jobs of given places, if they are still there and still ready", async () => {
    const queueId = await stage().queue();
    const jobs = stage().jobs(queueId, 5);
    const { places } = await stage().ready.flush(jobs, { notice: null, places: true });
    if (places === null) throw new Error("the places were asked for");
    const [first, second, third, ...rest] = places;
    if (!first || !second || !third) throw new Error("there are five");
    const taken = await stage().claim(queueId, { places: [second, first] });
    expect(ids(taken)).toEqual(ids(jobs.slice(0, 2)));
    // Taken before, another job's place, nobody's place: each comes to nothing.
    const wrong = [first, { ...third, seq: first.seq }, { ...third, tid: "(4000000,1)" }];
    expect(await stage().claim(queueId, { places: wrong })).toEqual([]);
    expect(await stage().claim(queueId, { places: [third], types: ["other"] })).toEqual([]);
    await stage().store.pauseQueue("", await nameOf(queueId), true);
    expect(await stage().claim(queueId, { places })).toEqual([]);
    await stage().store.pauseQueue("", await nameOf(queueId), false);
    const other = await stage().session();
    await other.query("begin");
    await other.query(`select id from millrace.job where seq = ${third.seq} for update`);
    expect(ids(await stage().claim(queueId, { places: [third, ...rest] }))).toEqual(
      ids(jobs.slice(3)),
    );
    await other.query("rollback");
    await other.close();
    const { store } = stage();
    expect(await store.foreignPlaces(places, ["work"])).toEqual([]);
    expect(await store.foreignPlaces(places, null)).toEqual([]);
    expect(await store.foreignPlaces(places, ["other"])).toEqual([third]);
    const every = { from: -32_768, to: 32_767 };
    expect(await store.readyPlaces(queueId, 10, [], every)).toEqual([third]);
    expect(await store.readyPlaces(queueId, 10, [], { ...every, to: third.weight - 1 })).toEqual(
      [],
    );
    const behind = [{ queueId, weight: third.weight, afterSeq: third.seq }];
    expect(await store.readyPlaces(queueId, 10, behind, every)).toEqual([]);
  });

  it("finds the same jobs by hint as by scan", async () => {
    const [plain, hinted] = [await stage().queue(), await stage().queue()];
    for (const queueId of [plain, hinted]) {
      for (const weight of [0, 5, 9])
        await stage().put(...stage().jobs(queueId, 20, { weight, payload: `{"w":${weight}}` }));
    }
    const hints = [0, 5, 9].map((weight) => ({ queueId: hinted, weight, afterSeq: 0 }));
    const order = (jobs: readonly { weight: number }[]) => jobs.map(({ weight }) => weight);
    for (const limit of [7, 30, 30]) {
      const scanned = await stage().claim(plain, { limit });
      const found = await stage().claim(hinted, { limit, hints });
      expect(order(found)).toEqual(order(scanned));
      for (const job of found) {
        const hint = hints.find(({ weight }) => weight === job.weight);
        if (hint !== undefined) hint.afterSeq = job.seq;
      }
    }
    expect(await stage().claim(hinted)).toEqual([]);
  });

  it("looks only behind a hint, so that a scan still finds what is before it", async () => {
    const queueId = await stage().queue();
    const [first, second, third] = stage().jobs(queueId, 3);
    if (!first || !second || !third) throw new Error("there are three");
    await stage().put(first);
    await stage().put(second);
    const [seen] = await stage().sql<{ seq: string }>(
      "select seq from millrace.job where id = $1",
      [first.id],
    );
    const hint = { queueId, weight: 5, afterSeq: Number(seen?.seq) };
    const another = { queueId, weight: 6, afterSeq: 0 };
    expect(ids(await stage().claim(queueId, { hints: [hint], limit: 1 }))).toEqual([second.id]);
    await stage().put(third);
    expect(ids(await stage().claim(queueId, { hints: [hint, another] }))).toEqual([third.id]);
    expect(ids(await stage().claim(queueId))).toEqual([first.id]);
  });

  it("gets nothing from a paused or an inactive queue, by scan or by hint", async () => {
    const queueId = await stage().queue();
    const name = await nameOf(queueId);
    await stage().put(stage().job(queueId));
    const hint = { queueId, weight: 5, afterSeq: 0 };
    const claimed = async () => [
      ...(await stage().claim(queueId)),
      ...(await stage().claim(queueId, { hints: [hint] })),
      ...(await stage().claim(queueId, { hints: [hint, { ...hint, weight: 6 }] })),
    ];
    await stage().store.pauseQueue("", name, true);
    expect(await claimed()).toEqual([]);
    await stage().store.pauseQueue("", name, false);
    await stage().store.configureQueue("", name, { isActive: false });
    expect(await claimed()).toEqual([]);
    await stage().store.configureQueue("", name, { isActive: true });
    expect(await claimed()).toHaveLength(1);
  });

  it("refuses a job that has expired", async () => {
    const queueId = await stage().queue();
    const [late, fine] = stage().jobs(queueId, 2, { expiresInMs: 600_000 });
    if (late === undefined || fine === undefined) return;
    await stage().put(late, fine);
    await stage().sql("update millrace.job set expires_at = now() where id = $1", [late.id]);
    expect(ids(await stage().claim(queueId))).toEqual([fine.id]);
  });

  it("takes only the types it was asked for", async () => {
    const queueId = await stage().queue();
    const jobs = ["a", 'odd, "type"', "b"].map((type) => stage().job(queueId, { type }));
    await stage().put(...jobs);
    expect(await stage().claim(queueId, { types: [] })).toEqual([]);
    expect(await stage().claim(queueId, { types: ["c"] })).toEqual([]);
    const some = await stage().claim(queueId, { types: ['odd, "type"', "b"] });
    expect(ids(some)).toEqual(ids(jobs.slice(1)));
    expect(ids(await stage().claim(queueId, { types: null }))).toEqual([jobs[0]?.id]);
  });

  it("takes at most one suspect, only when asked, and never more than the limit in all", async () => {
    const queueId = await stage().queue();
    const suspects = await crashed(queueId, 3);
    await stage().put(...stage().jobs(queueId, 4));
    const isSuspect = ({ id }: { id: string }) => suspects.includes(id);
    const without = await stage().claim(queueId, { limit: 1, suspect: false });
    expect(without.filter(isSuspect)).toEqual([]);
    const withOne = await stage().claim(queueId, { limit: 2 });
    expect(withOne.filter(isSuspect)).toHaveLength(1);
    expect(withOne.length).toBeLessThanOrEqual(2);
    const rest = await stage().claim(queueId);
    expect(rest.filter(isSuspect)).toHaveLength(1);
    expect(ids(await stage().claim(queueId))).toHaveLength(1);
    expect(await stage().claim(queueId)).toEqual([]);
  });

  async function crashed(queueId: number, count: number): Promise<string[]> {
    await stage().put(...stage().jobs(queueId, count));
    const held = await stage().claim(queueId, { limit: count });
    for (const job of held) await stage().settle(job, retried(), true);
    await stage().promoteAll();
    return ids(held);
  }

  it("gives each job to one of many claimers", async () => {
    const queueId = await stage().queue();
    for (let i = 0; i < 4; i++) await stage().put(...stage().jobs(queueId, 250));
    const workers = Array.from({ length: 6 }, (_, i) => stage().store.worker(`claimer ${i}`));
    const leaseId = await stage().openLease();
    const taken = await Promise.all(
      workers.map(async (worker) => {
        const mine: string[] = [];
        for (let empty = 0; empty < 3; ) {
          const claim = await stage().request(queueId, { leaseId, limit: 7 });
          const { jobs } = await worker.turn({ ...blank(), claim });
          mine.push(...ids(jobs));
          empty = jobs.length === 0 ? empty + 1 : 0;
        }
        return mine;
      }),
    );
    for (const worker of workers) await worker.close();
    const all = taken.flat();
    expect(all).toHaveLength(1_000);
    expect(new Set(all).size).toBe(1_000);
  });

  const blank = () => ({
    worker: "worker",
    process: stage().process,
    completions: [],
    finishedClaims: [],
  });

  it("is replayed under its id with the jobs still held, and never made twice", async () => {
    const queueId = await stage().queue();
    await stage().put(...stage().jobs(queueId, 5, { meta: { category: "sync" } }));
    const claimId = randomUUID();
    const claimed = await stage().claim(queueId, { claimId, limit: 3 });
    const plain = (jobs: readonly object[]) => JSON.parse(JSON.stringify(jobs));
    expect(plain((await stage().worker.replay(claimId)).jobs)).toEqual(plain(claimed));
    await expect(stage().claim(queueId, { claimId })).rejects.toThrow();
    await stage().complete(claimed.slice(0, 1));
    expect(ids((await stage().worker.replay(claimId)).jobs)).toEqual(ids(claimed.slice(1)));
    expect((await stage().worker.replay(randomUUID())).jobs).toEqual([]);
    expect(await stage().claim(queueId)).toHaveLength(2);
  });

  it("completes and claims in one turn, and forgets the claims that are finished", async () => {
    const queueId = await stage().queue();
    await stage().put(...stage().jobs(queueId, 3));
    const claimId = randomUUID();
    const held = await stage().claim(queueId, { claimId, limit: 2 });
    const turned = await stage().worker.turn({
      ...blank(),
      completions: held.map((job) => completionOf(job)),
      finishedClaims: [claimId],
      claim: await stage().request(queueId),
    });
    expect(turned.completed).toBeNull();
    expect(turned.jobs).toHaveLength(1);
    const rows = await stage().sql("select from millrace.claim where id = $1", [claimId]);
    expect(rows).toEqual([]);
  });
};

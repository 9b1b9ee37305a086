import { expect, it } from "vitest";
import type { LapsedJob } from "../../src/store/store.ts";
import {
  type ClaimOptions,
  completionOf,
  dead,
  ids,
  released,
  retried,
  type Topic,
  toSettlement,
} from "./stage.ts";

export const lapse: Topic = (stage) => {
  const lapsedOf = async (leaseId: string): Promise<readonly LapsedJob[]> =>
    (await stage().upkeep.findLapsed()).find((one) => one.leaseId === leaseId)?.jobs ?? [];
  const hold = async (count = 1, options = {}, claim: ClaimOptions = {}) => {
    const [queueId, leaseId] = [await stage().queue(), await stage().openLease()];
    await stage().put(...stage().jobs(queueId, count, options));
    const jobs = await stage().claim(queueId, { leaseId, ...claim });
    const [job] = jobs;
    if (job === undefined) throw new Error("nothing was claimed");
    return { queueId, leaseId, jobs, job };
  };

  const age = async (leaseId: string, id: string, minutes: number) => {
    const by = `${minutes} min`;
    await stage().sql(
      "update millrace.job set started_at = started_at - $2::interval where id = $1",
      [id, by],
    );
    await stage().sql(
      "update millrace.claim set deadline = deadline - $2::interval where lease_id = $1",
      [leaseId, by],
    );
  };

  it("finds the jobs of leases that are over, and of no others", async () => {
    const [living, over] = [await hold(), await hold(3)];
    await stage().endLease(over.leaseId);
    expect(await lapsedOf(living.leaseId)).toEqual([]);
    const found = await lapsedOf(over.leaseId);
    expect(ids(found).sort()).toEqual(ids(over.jobs).sort());
    expect(found.find(({ id }) => id === over.job.id)).toMatchObject({
      ...{ token: over.job.token, type: "work", attempt: 1, maxAttempts: 5, crashCount: 0 },
      ...{ timeline: [], worker: "worker", overtime: false, startedAt: over.job.startedAt },
    });
  });

  it("finds all that a lease held, however many claims that were", async () => {
    const { queueId, leaseId, job, jobs } = await hold(600, {}, { limit: 600 });
    await stage().sql(
      `with split as (
        update millrace.job set claim_id = gen_random_uuid() where claim_id = $1 returning id, claim_id
      )
      insert into millrace.claim (id, lease_id, job_ids) select claim_id, $2, array[id] from split`,
      [job.token.claimId, leaseId],
    );
    const other = await hold();
    await stage().endLease(leaseId);
    const found = await lapsedOf(leaseId);
    expect(ids(found).sort()).toEqual(ids(jobs).sort());
    expect(await lapsedOf(other.leaseId)).toEqual([]);
    const settlements = found.map((one) => toSettlement({ ...one, queueId }, released));
    const settled = await stage().upkeep.settleLapsed(leaseId, settlements, stage().process);
    expect(settled.size).toBe(600);
    await stage().upkeep.forgetEnded();
  });

  it("tells how the suspect of a claim ran, once a renewal has said so", async () => {
    const { leaseId, job } = await hold(2);
    const { claimId } = job.token;
    const renew = (mark = {}) => stage().lease.renew(leaseId, 60_000, [claimId], mark);
    const ran = async () => {
      await stage().endLease(leaseId);
      return (await lapsedOf(leaseId)).map((one) => one.ran);
    };
    expect(await ran()).toEqual(["not_yet", "not_yet"]);
    await renew({ alone: claimId });
    await renew();
    expect(await ran()).toEqual(["alone", "alone"]);
    await renew({ shared: claimId });
    expect(await ran()).toEqual(["shared", "shared"]);
    await renew({ shared: crypto.randomUUID(), alone: crypto.randomUUID() });
    expect(await ran()).toEqual(["not_yet", "not_yet"]);
  });

  it("takes a suspect for one that ran alone where nobody tells", async () => {
    const { leaseId } = await hold();
    // As a version does that does not know of it.
    await stage().sql("update millrace.lease set spared = default where id = $1", [leaseId]);
    await stage().endLease(leaseId);
    expect(await lapsedOf(leaseId)).toMatchObject([{ ran: "alone", spared: false }]);
  });

  it("tells that a lease is spared, until a renewal says that this is over", async () => {
    const { leaseId, job } = await hold(2);
    const renew = (mark = {}) => stage().lease.renew(leaseId, 60_000, [job.token.claimId], mark);
    const spared = async () => {
      await stage().endLease(leaseId);
      return (await lapsedOf(leaseId)).map((one) => one.spared);
    };
    expect(await spared()).toEqual([false, false]);
    await renew({ spared: true });
    await renew();
    expect(await spared()).toEqual([true, true]);
    await renew({ spared: false });
    expect(await spared()).toEqual([false, false]);
  });

  it("settles under a lease that is over, once", async () => {
    const { leaseId, job, queueId } = await hold();
    await stage().endLease(leaseId);
    expect(await stage().settleLapsed(job, leaseId, retried(), true)).toBe("retried");
    expect(await stage().settleLapsed(job, leaseId, retried(), true)).toBeUndefined();
    expect(await stage().find(job.id)).toMatchObject({ state: "scheduled", crashCount: 1 });
    expect(await stage().complete([job])).toBe(0);
    await stage().promoteAll();
    const [again] = await stage().claim(queueId);
    expect(again).toMatchObject({ id: job.id, attempt: 2, crashCount: 1, token: { claimNo: 2 } });
  });

  it("does not settle under a lease that is alive, nor after a renewal in between", async () => {
    const { leaseId, job } = await hold();
    expect(await stage().settleLapsed(job, leaseId, retried(), true)).toBeUndefined();
    await stage().endLease(leaseId);
    expect(await lapsedOf(leaseId)).toHaveLength(1);
    await stage().lease.renew(leaseId, 60_000, [job.token.claimId]);
    expect(await stage().settleLapsed(job, leaseId, retried(), true)).toBeUndefined();
    expect(await stage().find(job.id)).toMatchObject({ state: "running", crashCount: 0 });
    expect(await stage().complete([job])).toBe(1);
  });

  it("lets a renewal that is under way win", async () => {
    const { leaseId, job } = await hold();
    await stage().endLease(leaseId);
    const holder = await stage().session();
    await holder.query("begin");
    await holder.query(
      "update millrace.lease set renewed_at = now(), expires_at = now() + interval '1 min' where id = $1",
      [leaseId],
    );
    const settled = stage().settleLapsed(job, leaseId, retried(), true);
    await holder.query("commit");
    expect(await settled).toBeUndefined();
    expect(await stage().stateOf(job.id)).toBe("running");
    await holder.close();
  });

  it("refuses the renewal that comes after it", async () => {
    const { leaseId, job } = await hold();
    await stage().endLease(leaseId);
    await stage().settleLapsed(job, leaseId, retried(), true);
    const renewal = await stage().lease.renew(leaseId, 60_000, [job.token.claimId]);
    expect(renewal.renewed).toBe(false);
  });

  it("is fenced by the token too", async () => {
    const { leaseId, job } = await hold();
    await stage().endLease(leaseId);
    const stale = { ...job, token: { ...job.token, claimNo: 7 } };
    expect(await stage().settleLapsed(stale, leaseId, dead)).toBeUndefined();
    expect(await stage().stateOf(job.id)).toBe("running");
  });

  it("spares a neighbour: the attempt is given back and nothing is charged", async () => {
    const { leaseId, job } = await hold();
    await stage().endLease(leaseId);
    expect(await stage().settleLapsed(job, leaseId, released)).toBe("released");
    expect(await stage().find(job.id)).toMatchObject({ state: "ready", attempt: 0, crashCount: 0 });
  });

  it("cancels what was to be cancelled", async () => {
    const { leaseId, job } = await hold();
    await stage().store.cancel(job.id, null);
    await stage().endLease(leaseId);
    expect(await stage().settleLapsed(job, leaseId, retried(), true)).toBe("cancelled");
    expect(await stage().find(job.id)).toMatchObject({ state: "cancelled", crashCount: 1 });
  });

  it("makes a dead letter of a job that crashed too often", async () => {
    const { leaseId, job } = await hold();
    await stage().endLease(leaseId);
    expect(await stage().settleLapsed(job, leaseId, dead, true)).toBe("dead");
    expect(await stage().find(job.id)).toMatchObject({ state: "dead", crashCount: 1 });
  });

  it("goes on with the rest of a lease when only some of its jobs were settled", async () => {
    const { leaseId, jobs } = await hold(4);
    await stage().endLease(leaseId);
    for (const [i, job] of jobs.entries()) {
      expect(await lapsedOf(leaseId)).toHaveLength(4 - i);
      expect(await stage().settleLapsed(job, leaseId, retried(), true)).toBe("retried");
    }
    const left = await stage().sql(
      "select from millrace.claim where lease_id = $1 union all select from millrace.lease where id = $1",
      [leaseId],
    );
    expect(left).toEqual([]);
  });

  it("takes a run that is longer than its maxRuntimeMs from a living lease, one lease later", async () => {
    const { leaseId, jobs } = await hold(2, { maxRuntimeMs: 60_000 });
    const [long, short] = jobs;
    if (long === undefined || short === undefined) throw new Error("nothing was claimed");
    expect(await lapsedOf(leaseId)).toEqual([]);
    // Until its lease is over nobody knows whether its worker is dead: then it is no failure, but a crash.
    await age(leaseId, long.id, 2);
    expect(await lapsedOf(leaseId)).toEqual([]);
    await age(leaseId, long.id, 10);
    const found = await lapsedOf(leaseId);
    expect(found).toMatchObject([{ id: long.id, overtime: true }]);
    expect(await stage().settleLapsed(short, leaseId, retried())).toBeUndefined();
    expect(await stage().settleLapsed(long, leaseId, retried())).toBe("retried");
    expect(await stage().complete([long])).toBe(0);
    expect(await stage().complete([short])).toBe(1);
    expect((await stage().lease.renew(leaseId, 60_000, [])).renewed).toBe(true);
  });

  it("does not count the time of who has to wait before it begins", async () => {
    const { leaseId, job } = await hold(1, { maxRuntimeMs: 60_000 });
    const { claimId } = job.token;
    await stage().lease.renew(leaseId, 600_000, [claimId], { untimed: claimId });
    await age(leaseId, job.id, 20);
    expect(await lapsedOf(leaseId)).toEqual([]);
    await stage().endLease(leaseId);
    expect(await lapsedOf(leaseId)).toMatchObject([{ id: job.id, overtime: false }]);
  });

  it("counts living and lapsed leases", async () => {
    const before = await stage().upkeep.census();
    const leaseId = await stage().openLease();
    await stage().openLease();
    await stage().endLease(leaseId);
    const after = await stage().upkeep.census();
    expect([after.live - before.live, after.lapsed - before.lapsed]).toEqual([1, 1]);
    expect(after.serverUpMs).toBeGreaterThan(0);
  });

  it("forgets leases and claims that hold nothing any more, and only those", async () => {
    const [empty, full] = [await hold(), await hold()];
    await stage().complete([empty.job]);
    await stage().endLease(empty.leaseId);
    await stage().endLease(full.leaseId);
    await stage().upkeep.forgetEnded();
    const leases = await stage().sql<{ id: string }>(
      "select id from millrace.lease where id = any($1)",
      [[empty.leaseId, full.leaseId]],
    );
    expect(leases).toEqual([{ id: full.leaseId }]);
    expect(ids(await lapsedOf(full.leaseId))).toEqual([full.job.id]);
  });

  it("ends a job once when two of its runs end together, by the one that holds it", async () => {
    const queueId = await stage().queue();
    const job = await stage().running(queueId);
    await stage().settle(job, released);
    const [again] = await stage().claim(queueId);
    if (again === undefined) throw new Error("nothing was claimed");
    const turn = { worker: "w", process: stage().process, finishedClaims: [], claim: null };
    const completions = [completionOf(job, '"old"'), completionOf(again, '"new"')];
    await stage().worker.turn({ ...turn, completions });
    const rows = await stage().sql("select result from millrace.history where id = $1", [job.id]);
    expect(rows).toEqual([{ result: "new" }]);
  });
};

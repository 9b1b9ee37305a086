import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { type Claim, ids, type Topic } from "./stage.ts";

export const lease: Topic = (stage) => {
  const renew = (leaseId: string, claims: readonly string[]) =>
    stage().lease.renew(leaseId, 60_000, claims);
  const expiryOf = async (leaseId: string) => {
    const [row] = await stage().sql<{ left: number }>(
      "select extract(epoch from expires_at - now())::float8 as left from millrace.lease where id = $1",
      [leaseId],
    );
    return row?.left ?? 0;
  };
  /** A claim made before the last renewal. */
  const olderClaim = async (queueId: number, leaseId: string, ...others: Claim[]) => {
    const job = await stage().running(queueId, {}, { leaseId });
    await renew(
      leaseId,
      [job, ...others].map(({ token }) => token.claimId),
    );
    return job;
  };

  it("is extended by renewal from now on", async () => {
    const leaseId = await stage().openLease(1_000);
    expect(await renew(leaseId, [])).toMatchObject({ renewed: true, cancels: [], released: 0 });
    expect(await expiryOf(leaseId)).toBeGreaterThan(30);
  });

  it("may be renewed late, as long as nobody has reclaimed it", async () => {
    const leaseId = await stage().openLease();
    await stage().endLease(leaseId);
    expect((await renew(leaseId, [])).renewed).toBe(true);
    expect(await expiryOf(leaseId)).toBeGreaterThan(30);
  });

  it("is refused when it is unknown or has ended", async () => {
    const refused = { renewed: false, cancels: [], released: 0, releasedBefore: 0 };
    expect(await renew(randomUUID(), [])).toEqual(refused);
    const leaseId = await stage().openLease();
    await stage().lease.end(leaseId);
    await stage().lease.end(leaseId);
    expect(await renew(leaseId, [])).toEqual(refused);
  });

  it("releases an unlisted claim that is older than the previous renewal", async () => {
    const queueId = await stage().queue();
    const leaseId = await stage().openLease();
    const lost = await stage().running(queueId, {}, { leaseId });
    const held = await olderClaim(queueId, leaseId, lost);
    expect(await renew(leaseId, [held.token.claimId])).toMatchObject({ released: 1 });
    expect(await stage().find(lost.id)).toMatchObject({ state: "ready", attempt: 0 });
    expect(await stage().stateOf(held.id)).toBe("running");
    expect(await stage().complete([lost])).toBe(0);
    expect((await stage().worker.replay(lost.token.claimId)).jobs).toEqual([]);
    const [again] = await stage().claim(queueId);
    expect(again).toMatchObject({ id: lost.id, attempt: 1, token: { claimNo: 2 } });
  });

  it("keeps an unlisted claim that is younger: its answer may still be under way", async () => {
    const queueId = await stage().queue();
    const leaseId = await stage().openLease();
    const young = await stage().running(queueId, {}, { leaseId });
    await stage().sql(
      "update millrace.lease set renewed_at = now() - interval '1 s' where id = $1",
      [leaseId],
    );
    expect(await renew(leaseId, [])).toMatchObject({ released: 0 });
    expect(await stage().stateOf(young.id)).toBe("running");
    expect(await renew(leaseId, [])).toMatchObject({ released: 1 });
  });

  it("leaves another lease's claims alone", async () => {
    const queueId = await stage().queue();
    const [mine, theirs] = [await stage().openLease(), await stage().openLease()];
    const job = await olderClaim(queueId, theirs);
    await renew(mine, []);
    expect(await renew(mine, [])).toMatchObject({ released: 0 });
    expect(await stage().stateOf(job.id)).toBe("running");
  });

  it("reports the cancels requested of its own jobs", async () => {
    const queueId = await stage().queue();
    const [mine, theirs] = [await stage().openLease(), await stage().openLease()];
    const job = await stage().running(queueId, {}, { leaseId: mine });
    const other = await stage().running(queueId, {}, { leaseId: theirs });
    await stage().store.cancel(job.id, "enough");
    await stage().store.cancel(other.id, "enough");
    const { cancels } = await renew(mine, [job.token.claimId]);
    expect(cancels).toEqual([job.id]);
    expect(await stage().find(job.id)).toMatchObject({ state: "running", cancelRequested: true });
  });

  it("cancels, instead of releasing, an unlisted job whose cancel was requested", async () => {
    const queueId = await stage().queue();
    const leaseId = await stage().openLease();
    const job = await olderClaim(queueId, leaseId);
    await stage().store.cancel(job.id, null);
    expect(await renew(leaseId, [])).toMatchObject({ renewed: true, released: 1 });
    expect(await stage().find(job.id)).toMatchObject({ state: "cancelled", attempt: 0 });
    expect(await stage().claim(queueId)).toEqual([]);
    const counts = (await stage().store.counts([queueId])).get(queueId);
    expect(counts).toMatchObject({ enqueued: 1, removed: 1, depth: 0 });
  });

  it("leaves what it still held to the reclaimer when it ends", async () => {
    const queueId = await stage().queue();
    const leaseId = await stage().openLease();
    const job = await stage().running(queueId, {}, { leaseId });
    await stage().lease.end(leaseId);
    const lapsed = (await stage().upkeep.findLapsed()).find((one) => one.leaseId === leaseId);
    expect(ids(lapsed?.jobs ?? [])).toEqual([job.id]);
  });
};

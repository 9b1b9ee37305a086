import { expect, it } from "vitest";
import { retried, type Topic } from "./stage.ts";

export const presence: Topic = (stage) => {
  const worker = async (leaseId: string) =>
    (await stage().store.workers()).find((one) => one.leaseId === leaseId);
  const rename = (leaseId: string, name: string) =>
    stage().sql("update millrace.lease set worker = $2 where id = $1", [leaseId, name]);

  it("shows a living worker, what it serves and what it holds", async () => {
    const [queueId, leaseId] = [await stage().queue(), await stage().openLease()];
    await stage().put(...stage().jobs(queueId, 3), stage().job(queueId, { type: "other" }));
    const held = await stage().claim(queueId, { leaseId });
    expect(await worker(leaseId)).toMatchObject({
      ...{ name: "worker", state: "live", info: {}, running: { work: 3, other: 1 } },
      ...{ startedAt: expect.any(Date), renewedAt: expect.any(Date) },
    });
    await stage().complete(held);
    expect(await worker(leaseId)).toMatchObject({ running: {} });
  });

  it("shows a worker as dead while and after its jobs are taken back, then forgets it", async () => {
    const [queueId, leaseId] = [await stage().queue(), await stage().openLease()];
    const idle = await stage().openLease();
    await rename(leaseId, "busy");
    await rename(idle, "idle");
    const job = await stage().running(queueId, {}, { leaseId });
    await stage().endLease(leaseId);
    await stage().endLease(idle);
    expect(await worker(leaseId)).toMatchObject({ state: "dead", running: { work: 1 } });
    await stage().settleLapsed(job, leaseId, retried(), true);
    await stage().upkeep.forgetEnded();
    expect(await stage().sql("select from millrace.lease where id = $1", [leaseId])).toEqual([]);
    expect(await worker(leaseId)).toMatchObject({ name: "busy", state: "dead", running: {} });
    expect(await worker(idle)).toMatchObject({ name: "idle", state: "dead" });
    await stage().upkeep.tidy();
    expect(await worker(leaseId)).toMatchObject({ state: "dead" });
    await stage().sql("update millrace.dead_worker set expires_at = expires_at - interval '1 day'");
    await stage().upkeep.tidy();
    expect(await worker(leaseId)).toBeUndefined();
  });

  it("does not call a worker dead that came back under a new lease, nor one that stopped", async () => {
    const [before, after, stopped] = [
      await stage().openLease(),
      await stage().openLease(),
      await stage().openLease(),
    ];
    for (const leaseId of [before, after]) await rename(leaseId, "came-back");
    await stage().endLease(before);
    await stage().upkeep.forgetEnded();
    await stage().lease.end(stopped);
    expect(await worker(before)).toBeUndefined();
    expect(await worker(after)).toMatchObject({ state: "live" });
    expect(await worker(stopped)).toBeUndefined();
  });
};

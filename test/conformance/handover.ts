import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import type { Handover, NewJob, Notice, Offer } from "../../src/store/store.ts";
import { until } from "../support/until.ts";
import { handing, newChannel } from "./handing.ts";
import type { Topic } from "./stage.ts";

export const handover: Topic = (stage) => {
  const { heard, listening, offering, handAll } = handing(stage);

  const hand = async (job: NewJob, offer: Offer, options: Partial<Handover> = {}) => {
    const { made, ...claim } = await handAll([job], offer, options);
    return { ...claim, jobId: job.id, made };
  };

  /** Stored as ready, and announced as ever. */
  const refused = async (offer: Offer, options: Partial<Handover> = {}) => {
    await listening();
    const from = heard.length;
    const [queueId = 0] = offer.queueIds;
    const job = stage().job(queueId);
    expect((await hand(job, offer, options)).made).toBe(false);
    expect(await stage().find(job.id)).toMatchObject({ state: "ready", attempt: 0 });
    const said = await until("something was said", () => heard.slice(from)[0]);
    expect(said).toEqual({ kind: "ready", queueIds: [queueId], late: false });
    const claims = await stage().sql("select from millrace.claim where lease_id = $1", [
      offer.leaseId,
    ]);
    expect(claims).toEqual([]);
  };

  it("stores a lone job as claimed for a worker elsewhere, and tells that one", async () => {
    const queueId = await stage().queue();
    const offer = await offering(queueId);
    const from = heard.length;
    const job = stage().job(queueId, { maxRuntimeMs: 5_000, payload: '{"n":7}' });
    const { made, ...claim } = await hand(job, offer);
    expect(made).toBe(true);
    const said = await until("it is told", () => heard.slice(from)[0]);
    expect(said).toEqual({ kind: "handed", claim });
    expect(await stage().find(job.id)).toMatchObject({ state: "running", attempt: 1 });
    expect(await stage().claim(queueId)).toEqual([]);
    const { jobs } = await stage().worker.handed(claim);
    const token = { claimId: claim.claimId, claimNo: 1 };
    expect(jobs).toMatchObject([{ id: job.id, token, payload: { n: 7 }, maxRuntimeMs: 5_000 }]);
    expect((await stage().worker.replay(claim.claimId)).jobs).toMatchObject([{ id: job.id }]);
    expect(await stage().complete(jobs)).toBe(1);
    expect((await stage().worker.handed(claim)).jobs).toEqual([]);
    const counts = (await stage().store.counts([queueId])).get(queueId);
    expect(counts).toMatchObject({ enqueued: 1, completed: 1, depth: 0 });
  });

  it("is refused without an offer, with another one, and with one that is withdrawn", async () => {
    const queueId = await stage().queue();
    const offer = await offering(queueId);
    await refused({ ...offer, leaseId: randomUUID() });
    await stage().sql("delete from millrace.job where queue_id = $1", [queueId]);
    await refused(offer, { offerId: randomUUID() });
    await stage().sql("delete from millrace.job where queue_id = $1", [queueId]);
    await (await listening()).leave(offer.leaseId);
    await refused(offer);
  });

  it("is refused when the worker has not renewed for a while", async () => {
    const offer = await offering(await stage().queue(), 60_000);
    await refused(offer, { leaseLeftMs: 61_000 });
  });

  it("is refused when an older job is ready, unless that lies before the hint", async () => {
    const queueId = await stage().queue();
    const offer = await offering(queueId);
    await stage().put(stage().job(queueId));
    await refused(offer);
    const [row] = await stage().sql<{ seq: string }>(
      "select max(seq)::text as seq from millrace.job where queue_id = $1",
      [queueId],
    );
    const handed = await hand(stage().job(queueId), offer, { afterSeq: Number(row?.seq) });
    expect(handed.made).toBe(true);
  });

  it("is refused while the queue is paused", async () => {
    const [queue] = await stage().store.ensureQueues("", ["rests"]);
    const offer = await offering(queue?.id ?? 0);
    await stage().store.pauseQueue("", "rests", true);
    const job = stage().job(queue?.id ?? 0);
    expect((await hand(job, offer)).made).toBe(false);
    expect(await stage().stateOf(job.id)).toBe("ready");
  });

  it("ends with the connection that would hear of it", async () => {
    const queueId = await stage().queue();
    const leaseId = await stage().openLease();
    const offer = {
      ...{ leaseId, offerId: randomUUID(), queueIds: [queueId], types: ["work"] },
      ...{
        hints: [{ queueId, weight: 5, afterSeq: 12 }],
        leaseLeftMs: 1_000,
        channel: newChannel(),
        ...{ atOnce: 1, most: 1 },
      },
    };
    await stage().lease.offer(offer);
    const standing = async () =>
      (await stage().store.offers()).filter((one) => one.leaseId === leaseId);
    expect(await standing()).toEqual([]);
    const mortal = await stage().store.listen(() => {});
    await mortal.stand(leaseId, offer.channel);
    await mortal.stand(leaseId, offer.channel);
    expect(mortal.stands(leaseId)).toBe(true);
    expect(await standing()).toEqual([offer]);
    await mortal.leave(leaseId);
    expect(await standing()).toEqual([]);
    await mortal.stand(leaseId, offer.channel);
    expect(await standing()).toEqual([offer]);
    await mortal.close();
    await until("the server has noticed", async () => (await standing()).length === 0);
    await refused(offer);
  });

  it("is read by nobody but the lease it was made for", async () => {
    const queueId = await stage().queue();
    const mine = await hand(stage().job(queueId), await offering(queueId));
    const leaseId = await stage().openLease();
    const read = async (claim: typeof mine) => (await stage().worker.handed(claim)).jobs.length;
    expect(await read({ ...mine, leaseId })).toBe(0);
    expect(await read({ ...mine, claimId: randomUUID() })).toBe(0);
    expect(await read({ ...mine, jobId: randomUUID() })).toBe(0);
    expect(await read(mine)).toBe(1);
  });

  it("comes back unspent when the worker never hears of it", async () => {
    const queueId = await stage().queue();
    const { jobId, leaseId, claimId } = await hand(stage().job(queueId), await offering(queueId));
    const renew = () => stage().lease.renew(leaseId, 60_000, []);
    await renew();
    expect(await renew()).toMatchObject({ renewed: true, released: 1 });
    expect(await stage().find(jobId)).toMatchObject({ state: "ready", attempt: 0, crashCount: 0 });
    expect((await stage().worker.handed({ jobId, leaseId, claimId })).jobs).toEqual([]);
  });

  it("lapses with the lease", async () => {
    const queueId = await stage().queue();
    const { leaseId, jobId } = await hand(stage().job(queueId), await offering(queueId));
    await stage().endLease(leaseId);
    const lapsed = (await stage().upkeep.findLapsed()).find((one) => one.leaseId === leaseId);
    expect(lapsed?.jobs).toMatchObject([{ id: jobId }]);
  });

  it("lets the job go along with its notice, whatever is in it", async () => {
    const queueId = await stage().queue();
    const offer = await offering(queueId);
    const from = heard.length;
    const jobText = `{"type":"work"}\n{"text":"two\\nlines 'and' \\"more\\" ü"}`;
    const { made, ...claim } = await hand(stage().job(queueId), offer, { texts: [jobText] });
    expect(made).toBe(true);
    const said = await until("it is told", () => heard.slice(from)[0]);
    const [row] = await stage().sql<{ seq: number; at: number }>(
      "select seq::float8, date_part('epoch', started_at) as at from millrace.job where id = $1",
      [claim.jobId],
    );
    const fresh = { texts: [jobText], tids: null, ...row };
    expect(said).toEqual({ kind: "handed", claim: { ...claim, fresh } });
  });

  it("is told on the worker's own channel only, and any other text there is no notice", async () => {
    const others: Notice[] = [];
    const stranger = await stage().store.listen((notice) => others.push(notice));
    const queueId = await stage().queue();
    const offer = await offering(queueId);
    const from = heard.length;
    const id = randomUUID();
    const say = (text: string) => stage().sql("select pg_notify($1, $2)", [offer.channel, text]);
    for (const text of ["", "ready", id, `${id} ${id}`, `${id} ${id} x'; --`]) await say(text);
    await stage().ready.notify(`${id} ${id} ${id}`);
    const { made, ...claim } = await hand(stage().job(queueId), offer);
    expect(made).toBe(true);
    await until("the last is heard", () => heard.length > from);
    expect(heard.slice(from)).toEqual([{ kind: "handed", claim }]);
    await stage().ready.notify("queues");
    await until("the stranger hears", () => others.length > 0);
    expect(others).toEqual([{ kind: "queues" }]);
    await stranger.close();
  });
};

import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import type { Handover, Notice } from "../../src/store/store.ts";
import { until } from "../support/until.ts";
import { handing } from "./handing.ts";
import type { Topic } from "./stage.ts";

export const handoverOfSeveral: Topic = (stage) => {
  const { heard, offering, handAll, handAndSee, handOrPlace } = handing(stage);

  it("stores several jobs as claimed by one claim, and tells all of it, however much it is", async () => {
    const queueId = await stage().queue();
    const offer = { ...(await offering(queueId)), most: 2_000 };
    const from = heard.length;
    const jobs = stage().jobs(queueId, 1_000);
    // As long as notices may be.
    const texts = Array.from({ length: 5 }, (_, n) => `${n}\n${"ü".repeat(3_840)}`);
    const { made, ...claim } = await handAll(jobs, offer, { texts });
    expect(made).toBe(true);
    const said = await until("it is told", () => heard.slice(from)[0]);
    const rows = await stage().sql<{ id: string; tid: string; seq: number; at: number }>(
      `select id, ctid::text as tid, seq::float8, date_part('epoch', started_at) as at
      from millrace.job where queue_id = $1 order by seq`,
      [queueId],
    );
    expect(rows.map(({ id }) => id)).toEqual(jobs.map(({ id }) => id));
    const { seq, at } = rows[0] ?? { seq: 0, at: 0 };
    const tids = rows.map(({ tid }) => tid).join(";");
    expect(said).toEqual({ kind: "handed", claim: { ...claim, fresh: { texts, tids, seq, at } } });
    const { jobs: read } = await stage().worker.handed(claim);
    expect(read.map(({ id }) => id)).toEqual(jobs.map(({ id }) => id));
    expect(read[0]).toMatchObject({ attempt: 1, token: { claimId: claim.claimId, claimNo: 1 } });
    expect(await stage().claim(queueId)).toEqual([]);
    expect(await stage().complete(read)).toBe(1_000);
    const counts = (await stage().store.counts([queueId])).get(queueId);
    expect(counts).toMatchObject({ enqueued: 1_000, completed: 1_000, depth: 0 });
  });

  it("leaves long payloads apart, where the worker reads them by their ids", async () => {
    const queueId = await stage().queue();
    const offer = await offering(queueId);
    const textOf = (n: number) => JSON.stringify({ n, text: "a longer text, ü ".repeat(60) });
    const long = (count: number) =>
      stage()
        .jobs(queueId, count)
        .map((job, n) => ({ ...job, payload: textOf(n) }));
    const jobs = long(50);
    const { made, ...claim } = await handAll(jobs, offer, { texts: ["x"] });
    expect(made).toBe(true);
    const ids = jobs.map(({ id }) => id);
    const [stored] = await stage().sql(
      `select (select count(*)::int from millrace.job where id = any ($1) and payload is null) as without,
        (select count(*)::int from millrace.long_payload where job_id = any ($1)) as apart`,
      [ids],
    );
    expect(stored).toEqual({ without: 50, apart: 50 });
    const texts = jobs.map(({ payload }) => payload);
    const { worker } = stage();
    expect(await worker.payloads(ids)).toEqual(texts);
    expect(await worker.payloads([...ids].reverse())).toEqual(texts);
    expect(await worker.payloads([randomUUID()])).toEqual([]);
    const { jobs: read } = await worker.handed(claim);
    expect(read.map(({ payload }) => JSON.stringify(payload))).toEqual(texts);
    expect(await stage().complete(read)).toBe(50);
    // Stored as ready they lie there too.
    const refused = long(201);
    expect((await handAll(refused, offer, { texts: ["x"] })).made).toBe(false);
    expect(await worker.payloads(refused.map(({ id }) => id))).toHaveLength(201);
  });

  it("is refused for more jobs than the worker's claims may hold", async () => {
    const queueId = await stage().queue();
    const offer = await offering(queueId);
    const handed = async (count: number) => {
      const { made } = await handAll(stage().jobs(queueId, count), offer, { texts: ["x"] });
      return made;
    };
    expect(await handed(150)).toBe(true);
    expect(await handed(51)).toBe(false);
    await stage().sql("delete from millrace.job where queue_id = $1 and claim_id is null", [
      queueId,
    ]);
    expect(await handed(50)).toBe(true);
    await stage().sql("delete from millrace.claim where lease_id = $1", [offer.leaseId]);
    expect(await handed(200)).toBe(true);
  });

  it("shows how much is with the worker, and how far it is behind", async () => {
    const queueId = await stage().queue();
    const offer = await offering(queueId);
    const hand = (count: number) => handAndSee(stage().jobs(queueId, count), offer);
    expect(await hand(150)).toEqual({ made: true, held: 150, behindMs: null });
    expect(await hand(30)).toEqual({ made: true, held: 180, behindMs: null });
    expect(await hand(30)).toEqual({ made: false, held: 180, behindMs: null });
    await stage().sql(
      `update millrace.job set ready_at = now() - interval '5 seconds'
      where queue_id = $1 and claim_id is null`,
      [queueId],
    );
    const behind = await hand(3);
    expect(behind).toMatchObject({ made: false, held: 180 });
    expect(behind.behindMs).toBeGreaterThanOrEqual(5_000);
  });

  it("is refused for several as for one: stored as ready, and announced", async () => {
    const queueId = await stage().queue();
    const offer = await offering(queueId);
    const paused = await stage().store.ensureQueues("", ["rests too"]);
    const rests = paused[0]?.id ?? 0;
    await stage().store.pauseQueue("", "rests too", true);
    const refusals: [number, Partial<Handover>][] = [
      [queueId, { offerId: randomUUID() }],
      [queueId, { leaseId: randomUUID() }],
      [queueId, { leaseLeftMs: 700_000 }],
      [rests, {}],
    ];
    for (const [to, options] of refusals) {
      const from = heard.length;
      const jobs = stage().jobs(to, 3);
      expect((await handAll(jobs, offer, { ...options, texts: ["x"] })).made).toBe(false);
      for (const { id } of jobs)
        expect(await stage().find(id)).toMatchObject({ state: "ready", attempt: 0 });
      const isReady = ({ kind }: Notice) => kind === "ready";
      await until("they are announced", () => heard.slice(from).some(isReady));
      await stage().sql("delete from millrace.job where id = any ($1)", [jobs.map(({ id }) => id)]);
    }
    await stage().put(stage().job(queueId));
    expect((await handAll(stage().jobs(queueId, 3), offer, { texts: ["x"] })).made).toBe(false);
  });

  it("says where those are that were refused, to who asks", async () => {
    const queueId = await stage().queue();
    const offer = await offering(queueId);
    expect(await handOrPlace(stage().jobs(queueId, 3), offer)).toBe(null);
    const elsewhere = { ...offer, offerId: randomUUID() };
    const jobs = stage().jobs(queueId, 40);
    const places = await handOrPlace(jobs, elsewhere);
    const rows = await stage().sql(
      `select queue_id as "queueId", weight, seq::float8, ctid::text as tid from millrace.job
      where id = any ($1) order by seq`,
      [jobs.map(({ id }) => id)],
    );
    expect(places).toEqual(rows);
    expect(places).toHaveLength(40);
  });

  it("tells nothing of a claim of which pieces are missing", async () => {
    const queueId = await stage().queue();
    const offer = await offering(queueId);
    const from = heard.length;
    const say = (text: string) => stage().sql("select pg_notify($1, $2)", [offer.channel, text]);
    const [torn, whole] = [randomUUID(), randomUUID()];
    const head = (claimId: string, kind: string) =>
      `${offer.leaseId} ${claimId} several 7 8.5 ${kind}`;
    await say(`${head(torn, "jobs")}\na`);
    await say(`${head(torn, "places")}\n(0,1)`);
    await say(`${head(whole, "jobs")}\nb`);
    await say(`${head(whole, "places")}\n(0,2);`);
    await say(`${head(whole, "last")}\n(0,3)`);
    const said = await until("the whole one is told", () => heard.slice(from)[0]);
    const fresh = { texts: ["b"], tids: "(0,2);(0,3)", seq: 7, at: 8.5 };
    const claim = { leaseId: offer.leaseId, claimId: whole, jobId: null, fresh };
    expect(said).toEqual({ kind: "handed", claim });
  });
};

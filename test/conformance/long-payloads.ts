import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import type { NewJob } from "../../src/store/store.ts";
import { until } from "../support/until.ts";
import { laneQueue, takeLanes } from "./lanes.ts";
import {
  type Claim,
  cancelled,
  dead,
  ids,
  released,
  retried,
  type Settleable,
  type Topic,
} from "./stage.ts";

const repair = { actor: "operator", reason: "fixed the cause" };
const words = "leave it beside the door ".repeat(30);
const contentOf = (n: number) => ({ n, words, "a\nb": "ü\n\\n" });
const longOf = (n: number) => JSON.stringify(contentOf(n));

export const longPayloads: Topic = (stage) => {
  const long = (queueId: number, n = 1, options: Partial<NewJob> = {}) =>
    stage().job(queueId, { payload: longOf(n), ...options });
  const several = (queueId: number, count = 3, options: Partial<NewJob> = {}) =>
    Array.from({ length: count }, (_, i) => long(queueId, i + 1, options));
  /** Which of these have their payload apart, and which in some row of theirs. */
  const placesOf = async (of: readonly string[]) => {
    const [row] = await stage().sql<{ apart: string[]; own: string[] }>(
      `select array(select job_id::text from millrace.long_payload where job_id = any($1::uuid[]) order by 1) as apart,
        array(select id::text from (
          select id, payload from millrace.job union all select id, payload from millrace.scheduled_job
          union all select id, payload from millrace.dead_job union all select id, payload from millrace.history
        ) j where id = any($1::uuid[]) and payload is not null order by 1) as own`,
      [of],
    );
    return row;
  };
  const areApart = async (of: readonly string[]) =>
    expect(await placesOf(of)).toEqual({ apart: [...of].sort(), own: [] });
  const isGone = async (id: string) => expect((await placesOf([id]))?.apart).toEqual([]);
  const contents = (jobs: readonly { readonly payload: unknown }[]) => jobs.map((j) => j.payload);
  const stored = async (id: string) => (await stage().find(id)).payload;

  it("lie apart when they are long on average, and with their jobs when not", async () => {
    const queueId = await stage().queue();
    await areApart(await stage().put(long(queueId)));
    await areApart(await stage().put(...several(queueId)));
    const mixed = [long(queueId), ...stage().jobs(queueId, 5)];
    const put = await stage().put(...mixed);
    expect(await placesOf(put)).toEqual({ apart: [], own: [...put].sort() });
    expect(await stored(mixed[0]?.id ?? "")).toEqual(contentOf(1));
  });

  it("belong to the tenants of their jobs, several in one flush", async () => {
    const queueId = await stage().queue();
    const jobs = ["one", "two", "one"].map((tenant, n) => long(queueId, n, { tenant }));
    await areApart(await stage().put(...jobs));
    const rows = await stage().sql<{ job_id: string; tenant: string }>(
      "select job_id, tenant from millrace.long_payload where job_id = any($1::uuid[]) order by job_id",
      [ids(jobs)],
    );
    expect(rows).toEqual(jobs.map(({ id, tenant }) => ({ job_id: id, tenant })));
    expect(contents(await stage().claim(queueId))).toEqual([0, 1, 2].map(contentOf));
  });

  it("go along with jobs that differ in all sorts of things", async () => {
    const queueId = await stage().queue();
    const jobs = [
      long(queueId, 0, { weight: 3, reference: "r", correlationId: "c" }),
      long(queueId, 1, { maxAttempts: 2, maxRuntimeMs: 9_000, meta: { category: "sync" } }),
      long(queueId, 2, { type: "other", expiresInMs: 60_000 }),
    ];
    await areApart(await stage().put(...jobs));
    expect(contents(await stage().claim(queueId))).toEqual([0, 1, 2].map(contentOf));
  });

  it("are read by every kind of claim", async () => {
    const [queueId, other] = [await stage().queue(), await stage().queue()];
    const wanted = [1, 2, 3].map(contentOf);
    const hint = { queueId, weight: 5, afterSeq: 0 };
    const ways = {
      scan: { hints: null },
      one: { hints: [hint] },
      hint: { hints: [hint, { ...hint, queueId: other }] },
    };
    for (const [way, options] of Object.entries(ways)) {
      await stage().put(...several(queueId));
      const claimed = await stage().claim([queueId, other], options);
      expect(contents(claimed), way).toEqual(wanted);
      expect(await stage().complete(claimed)).toBe(3);
    }
    const { places } = await stage().ready.flush(several(queueId), { notice: null, places: true });
    const claimId = randomUUID();
    const placed = await stage().claim(queueId, { claimId, places: places ?? [] });
    expect(contents(placed)).toEqual(wanted);
    expect(contents((await stage().worker.replay(claimId)).jobs)).toEqual(wanted);
  });

  it("are read with the claim that comes along with a settle", async () => {
    const queueId = await stage().queue();
    await stage().put(long(queueId, 1));
    const [first] = await stage().claim(queueId, { limit: 1 });
    await stage().put(long(queueId, 2));
    const turned = await stage().worker.turn({
      ...{ worker: "worker", process: stage().process, finishedClaims: [] },
      completions: [{ ...(first as Claim), result: undefined }],
      claim: await stage().request(queueId),
    });
    expect(contents(turned.jobs)).toEqual([contentOf(2)]);
    expect(await stored(first?.id ?? "")).toEqual(contentOf(1));
  });

  it("are read in queues that were put under control while they waited", async () => {
    const { id, name } = await laneQueue(stage());
    await stage().put(...several(id));
    await stage().store.configureQueue("", name, { concurrency: 10 });
    expect(contents((await takeLanes(stage(), id)).jobs)).toEqual([1, 2, 3].map(contentOf));
  });

  it("are read by a claim that had begun before they were stored", async () => {
    const { id } = await laneQueue(stage(), { concurrency: 10 });
    await stage().put(stage().job(id));
    await takeLanes(stage(), id);
    const holder = await stage().session();
    await holder.query("begin");
    await holder.query("select from millrace.queue_turn where queue_id = $1 for update", [id]);
    const claiming = takeLanes(stage(), id);
    await until("the claim waits for its turn", async () => {
      const waiting = await stage().sql(
        `select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like '%claim_lanes%'`,
      );
      return waiting.length > 0;
    });
    await stage().put(...several(id));
    await holder.query("commit");
    await holder.close();
    expect(contents((await claiming).jobs)).toEqual([1, 2, 3].map(contentOf));
  });

  it("are read by robots", async () => {
    const { items } = stage().store.service;
    const queueId = await stage().queue();
    const jobs = several(queueId, 2, { tenant: "acme" });
    await stage().put(...jobs);
    const wish = () => ({
      ...{ queueId, tenant: "acme", robot: "r", leaseMs: 60_000 },
      ...{ claimId: randomUUID(), holder: randomUUID() },
    });
    const [plain] = await items.take([{ ...wish(), limited: false }]);
    expect(plain?.payload).toEqual(contentOf(1));
    const [limited] = await items.take([{ ...wish(), limited: true }]);
    expect(limited?.payload).toEqual(contentOf(2));
    expect((await items.find(jobs[0]?.id ?? ""))?.payload).toEqual(contentOf(1));
  });

  it("stay where they are while their jobs go from table to table", async () => {
    const queueId = await stage().queue();
    const job = await stage().running(queueId, { payload: longOf(7) });
    const again = async (): Promise<Settleable> => {
      const [next] = await stage().claim(queueId);
      expect(next?.payload).toEqual(contentOf(7));
      return next as Claim;
    };
    const checked = async (state: string) => {
      expect(await stage().find(job.id)).toMatchObject({ state, payload: contentOf(7) });
      await areApart([job.id]);
    };
    await stage().settle(job, retried(60_000));
    await checked("scheduled");
    await stage().sql("update millrace.scheduled_job set due_at = now() where id = $1", [job.id]);
    await stage().promoteAll();
    await checked("ready");
    await stage().settle(await again(), released);
    await checked("ready");
    await stage().settle(await again(), dead);
    await checked("dead");
    await stage().store.discard(job.id, repair);
    await checked("discarded");
    const cancels = await stage().running(queueId, { payload: longOf(7) });
    await stage().settle(cancels, cancelled);
    expect(await stage().find(cancels.id)).toMatchObject({ payload: contentOf(7) });
    const deleted = long(queueId, 7);
    await stage().put(deleted);
    await stage().store.delete(deleted.id, repair);
    expect(await stage().find(deleted.id)).toMatchObject({ payload: contentOf(7) });
  });

  it("are written anew for jobs made of dead and cancelled ones", async () => {
    const queueId = await stage().queue();
    for (const end of [dead, cancelled]) {
      const job = await stage().running(queueId, { payload: longOf(4) });
      await stage().settle(job, end);
      const { id } = await stage().store.reprocess(job.id, randomUUID(), repair);
      expect(await placesOf([id])).toEqual({ apart: [], own: [id] });
      const [claimed] = await stage().claim(queueId);
      expect(claimed).toMatchObject({ id, payload: contentOf(4) });
    }
  });

  it("go with the records of their jobs, and no others", async () => {
    const completedAgo = async (days: number) => {
      const { id: queueId } = await stage().store.configureQueue("", randomUUID(), {
        retentionDays: 11,
      });
      const job = await stage().running(queueId, { payload: longOf(1) });
      await stage().complete([job]);
      await stage().sql(
        "update millrace.history set finished_at = finished_at - $2 * interval '1 day' where id = $1",
        [job.id, days],
      );
      return job.id;
    };
    await stage().sql(
      "select millrace.attach_history(11::smallint, (now() at time zone 'utc')::date - 15, 14)",
    );
    const [old, kept] = [await completedAgo(14), await completedAgo(3)];
    const queue = await stage().store.configureQueue("", randomUUID(), { deadRetentionDays: 5 });
    const died = await stage().running(queue.id, { payload: longOf(2) });
    await stage().settle(died, dead);
    await stage().sql(
      "update millrace.dead_job set finished_at = now() - interval '6 days' where id = $1",
      [died.id],
    );
    await stage().upkeep.prune({ auditDays: null });
    await isGone(old);
    await isGone(died.id);
    await areApart([kept]);
  });

  it("go with their queue", async () => {
    const queueId = await stage().queue();
    const done = await stage().running(queueId, { payload: longOf(1) });
    await stage().complete([done]);
    const waiting = long(queueId, 2);
    await stage().put(waiting);
    await stage().store.service.queues.delete(queueId, "operator", 2);
    await isGone(done.id);
    await isGone(waiting.id);
  });

  it("are erased with what else their jobs say, and leave the same hash as any", async () => {
    const queueId = await stage().queue();
    const tenant = `erased-${randomUUID()}`;
    const ended = await stage().running(queueId, { tenant, payload: longOf(1) });
    await stage().complete([ended]);
    const waits = long(queueId, 1, { tenant });
    await stage().put(waits);
    const beside = stage().job(queueId, { tenant, payload: longOf(1), delayMs: 60_000 });
    await stage().put(beside);
    const { tenants } = stage().store.service;
    expect((await tenants.eraseWaiting(tenant)).gone).toBe(2);
    await tenants.eraseEnded(tenant, null);
    const hashes = new Set<unknown>();
    for (const { id } of [ended, waits, beside]) {
      const { payload, meta } = await stage().find(id);
      expect(payload).toBe(null);
      hashes.add((meta as { erased?: { payload?: string } }).erased?.payload);
      await isGone(id);
    }
    expect([...hashes]).toEqual([expect.stringMatching(/^sha256:/)]);
  });
};

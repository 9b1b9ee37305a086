// Lone jobs are counted in their producer's row. PostgreSQL's own way, below the contract.

import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { systemClock } from "../../src/runtime/clock.ts";
import { Events } from "../../src/runtime/events.ts";
import { Database } from "../../src/store/postgres/database.ts";
import { PostgresProducer } from "../../src/store/postgres/producer.ts";
import type { DueRow } from "../../src/store/postgres/trigger-jobs.ts";
import { roomFor } from "../../src/store/postgres/trigger-room.ts";
import type { ImmediateClaim } from "../../src/store/store.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";
import type { Topic } from "./stage.ts";

export const tally: Topic = (stage) => {
  const common = { events: new Events(), random: Math.random };
  let url: string;
  let proxy: TcpProxy;
  let behind: Database;
  let laterMs = 0;
  const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + laterMs };
  let producer: PostgresProducer;

  beforeAll(async () => {
    url = await stage().url();
    proxy = await TcpProxy.start(url);
    const options = { schema: "millrace", poolSize: 1, queryTimeoutMs: 10_000 };
    behind = new Database({ ...common, ...options, clock, url: proxy.url });
  });
  afterAll(async () => {
    await producer.close();
    await behind.close();
    await proxy.close();
  });
  beforeEach(async () => {
    await producer?.close();
    await stage().sql("delete from millrace.producer");
    producer = newProducer();
  });

  const newProducer = (tallies = true) =>
    new PostgresProducer({
      ...{ ...common, clock, connection: behind.reserve("tally") },
      ...{ channel: "c", kind: "ready", patienceMs: 60_000 },
      allowed: { payloadsApart: true, tallies },
    });
  const claimOf = async (queueId: number, claimId: string): Promise<ImmediateClaim> => ({
    ...{ claimId, leaseId: await stage().openLease(), count: 1 },
    ...{ queueIds: [queueId], hints: [{ queueId, weight: 5, afterSeq: 0 }] },
  });
  /** For a worker that waits for it. */
  const put = async (queueId: number, by = producer) => {
    const job = stage().job(queueId);
    await by.flush([job], { notice: null, claim: await claimOf(queueId, job.id) });
  };
  const tallies = () =>
    stage().sql<{ queue: number; jobs: number; fresh: boolean }>(
      `select tally_queue_id as queue, tally_jobs::int as jobs,
        tally_minute >= date_trunc('minute', now()) - interval '1 minute' as fresh
      from millrace.producer where tally_queue_id is not null`,
    );
  const counted = async (queueId: number) => {
    const [row] = await stage().sql<{ jobs: number }>(
      "select coalesce(sum(enqueued), 0)::int as jobs from millrace.queue_count where queue_id = $1",
      [queueId],
    );
    return row?.jobs;
  };
  const enqueued = async (queueId: number) =>
    (await stage().store.counts([queueId])).get(queueId)?.enqueued;

  it("counts the lone jobs of one queue, and no others", async () => {
    const [queueId, other] = [await stage().queue(), await stage().queue()];
    for (let n = 1; n <= 3; n++) {
      await put(queueId);
      expect(await tallies()).toEqual([{ queue: queueId, jobs: n, fresh: true }]);
    }
    await put(other);
    await producer.flush(stage().jobs(queueId, 2), { notice: null });
    expect(await tallies()).toEqual([{ queue: queueId, jobs: 3, fresh: true }]);
    expect([await counted(queueId), await counted(other)]).toEqual([2, 1]);
    expect([await enqueued(queueId), await enqueued(other)]).toEqual([5, 1]);
  });

  it("counts nothing while older versions may read", async () => {
    const [queueId, older] = [await stage().queue(), newProducer(false)];
    await put(queueId, older);
    expect([await tallies(), await counted(queueId)]).toEqual([[], 1]);
    await older.close();
  });

  it("is moved when its minute is over, and begins anew, for whichever queue", async () => {
    const [queueId, other] = [await stage().queue(), await stage().queue()];
    await put(queueId);
    laterMs += 60_000;
    await put(queueId);
    await until("it was moved", async () => (await tallies()).length === 0);
    expect([await counted(queueId), await enqueued(queueId)]).toEqual([2, 2]);
    await until("it begins anew", async () => {
      await put(other);
      return (await tallies()).length > 0;
    });
    const [begun] = await tallies();
    expect(begun).toMatchObject({ queue: other, fresh: true });
    expect(await enqueued(other)).toBe(((await counted(other)) ?? 0) + (begun?.jobs ?? 0));
    await put(queueId);
    expect([await tallies(), await enqueued(queueId)]).toEqual([[begun], 3]);
  });

  it("counts every job once, whichever answers are lost", async () => {
    const [queueId, other] = [await stage().queue(), await stage().queue()];
    const jobs: string[] = [];
    const lose = async (to: number, how: "loseAnswer" | "loseQuestion") => {
      const job = stage().job(to);
      void (how === "loseAnswer" ? proxy.loseAnswer("client", job.id) : proxy.loseQuestion(job.id));
      await producer.flush([job], { notice: null, claim: await claimOf(to, job.id) });
      jobs.push(job.id);
    };
    await producer.flush(stage().jobs(other, 1), { notice: null });
    await lose(queueId, "loseAnswer");
    // Whether the lost one began a tally is not known: none is taken for this one.
    await put(other);
    await until("it was moved", async () => (await tallies()).length === 0);
    await lose(queueId, "loseQuestion");
    await put(queueId);
    await lose(other, "loseAnswer");
    await put(queueId);
    const found = (await stage().store.find(jobs)).length;
    expect([found, await enqueued(queueId), await enqueued(other)]).toEqual([3, 4, 3]);
  });

  it("is added up when its producer has gone", async () => {
    const queueId = await stage().queue();
    await put(queueId);
    await stage().sql("update millrace.producer set seen_at = now() - interval '2 days'");
    await stage().upkeep.tidy();
    expect([await tallies(), await counted(queueId), await enqueued(queueId)]).toEqual([[], 1, 1]);
    await put(queueId);
    expect([await tallies(), await enqueued(queueId)]).toMatchObject([[{ jobs: 1 }], 2]);
  });

  it("is part of every sum", async () => {
    const queueId = await stage().queue();
    await stage().sql("update millrace.queue set capacity = 7, warn_depth = 6 where id = $1", [
      queueId,
    ]);
    await stage().sql(
      `insert into millrace.producer (id, flush_no, tally_queue_id, tally_minute, tally_jobs)
      values (gen_random_uuid(), 0, $1, date_trunc('minute', now()), 7)`,
      [queueId],
    );
    const { service } = stage().store;
    const [[figures], [depth], series, stats] = await Promise.all([
      service.queues.figures().then((all) => all.filter(({ id }) => id === queueId)),
      service.figures.read().then((all) => all.queues.filter(({ id }) => id === queueId)),
      service.queues.series([queueId], 5),
      service.items.stats(queueId),
    ]);
    expect([figures?.waiting, depth?.ready, stats.new]).toEqual([7, 7, 7]);
    expect(series.queues.get(queueId)?.enqueued).toBe(7);
    expect(series.minutes.reduce((sum, { counts }) => sum + counts.enqueued, 0)).toBe(7);
    const notifier = stage().store.notifier();
    await notifier.raiseDepths();
    await notifier.close();
    expect(
      await stage().sql("select from millrace.deep_queue where queue_id = $1", [queueId]),
    ).toHaveLength(1);
    const [{ name } = { name: "" }] = await stage().sql<{ name: string }>(
      "select name from millrace.queue where id = $1",
      [queueId],
    );
    await expect(stage().sql("select millrace.enqueue('t', '{}', $1)", [name])).rejects.toThrow(
      "QUEUE_FULL",
    );
    const due = { is_active: true, job_queue: name, job_queue_id: queueId, capacity: 7 } as DueRow;
    const connection = behind.reserve("room");
    const room = roomFor((source, values) => connection.query(source, values), due, 1);
    await expect(room).rejects.toMatchObject({ code: "QUEUE_FULL" });
    await connection.close();
  });

  it("is forgotten with its queue", async () => {
    const queueId = await stage().queue();
    await put(queueId);
    await stage().sql("update millrace.queue set deleted_at = now() where id = $1", [queueId]);
    await stage().sql(
      `update millrace.producer set seen_at = now() - interval '2 days',
        tally_minute = tally_minute - interval '2 days'`,
    );
    for (let round = 0; round < 2; round++) await stage().upkeep.tidy();
    expect([await tallies(), await counted(queueId)]).toEqual([[], 0]);
  });
};

import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { retried, type Topic } from "./stage.ts";

export const upkeep: Topic = (stage) => {
  const partitions = () =>
    stage().sql<{ name: string }>(
      `select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = 'millrace' and c.relispartition and c.relkind = 'r' order by 1`,
    );

  it("attaches history for yesterday, today and the fourteen days after, once", async () => {
    expect(await stage().store.attachHistory()).toBe(0);
    const attached = (await partitions()).filter(({ name }) => name.startsWith("history_30_"));
    const day = (offset: number) =>
      new Date(Date.now() + offset * 86_400_000).toISOString().slice(0, 10).replaceAll("-", "");
    expect(attached.map(({ name }) => name)).toEqual(
      expect.arrayContaining([-1, 0, 1, 13, 14].map((offset) => `history_30_${day(offset)}`)),
    );
    expect(attached.length).toBeGreaterThanOrEqual(16);
  });

  it("attaches history from many processes at once", async () => {
    for (const days of [41, 42, 43])
      await stage().sql("insert into millrace.queue (name, retention_days) values ($1, $2)", [
        randomUUID(),
        days,
      ]);
    const attached = await Promise.all(
      Array.from({ length: 4 }, () => stage().store.attachHistory()),
    );
    expect(attached.reduce((a, b) => a + b)).toBe(3 * 16);
    const names = (await partitions()).map(({ name }) => name);
    expect(names.filter((name) => /^history_4[123]_/.test(name))).toHaveLength(3 * 16);
  });

  it("does not hold up writers of history while it attaches", async () => {
    const queueId = await stage().queue();
    const writer = await stage().session();
    await writer.query("begin");
    await writer.query("lock table millrace.history in row exclusive mode");
    await stage().sql("insert into millrace.queue (name, retention_days) values ($1, 44)", [
      randomUUID(),
    ]);
    expect(await stage().store.attachHistory()).toBe(16);
    await writer.query("rollback");
    await writer.close();
    const job = await stage().running(queueId);
    expect(await stage().complete([job])).toBe(1);
  });

  it("folds old counts without changing a sum", async () => {
    const queueId = await stage().queue();
    const countsNow = async () => (await stage().store.counts([queueId])).get(queueId);
    const work = async () => {
      await stage().put(...stage().jobs(queueId, 4));
      const [one, two, three] = await stage().claim(queueId, { limit: 3 });
      if (one === undefined || two === undefined || three === undefined) throw new Error("none");
      await stage().complete([one, two]);
      await stage().settle(three, retried(3_600_000));
    };
    const age = () =>
      stage().sql(
        "update millrace.queue_count set minute = minute - interval '1 hour' where minute > 'epoch' and queue_id = $1",
        [queueId],
      );
    for (let round = 0; round < 3; round++) {
      await work();
      await age();
      await work();
      const before = await countsNow();
      expect(await stage().upkeep.tidy()).toBe(true);
      expect(await countsNow()).toEqual(before);
    }
    const rows = await stage().sql<{ folded: boolean }>(
      "select minute = 'epoch' as folded from millrace.queue_count where queue_id = $1",
      [queueId],
    );
    expect(rows.filter(({ folded }) => folded)).toHaveLength(1);
  });

  it("keeps the counts of the last hour by the minute, in one row each", async () => {
    const queueId = await stage().queue();
    const add = (minutesAgo: number, enqueued: number) =>
      stage().sql(
        `insert into millrace.queue_count (queue_id, process, minute, enqueued)
        select $1, gen_random_uuid(), date_trunc('minute', now()) - $2 * interval '1 minute', $3`,
        [queueId, minutesAgo, enqueued],
      );
    for (const [minutesAgo, enqueued] of [
      ...[[0, 1] as const, [20, 2] as const, [20, 3] as const, [55, 4] as const],
      ...[[200, 5] as const, [300, 6] as const],
    ])
      await add(minutesAgo, enqueued);
    const read = async () => {
      const { minutes, queues } = await stage().store.service.queues.series([queueId], 60);
      const busy = minutes.filter(({ counts }) => counts.enqueued > 0);
      return { all: minutes.length, sum: queues.get(queueId)?.enqueued, busy: busy.length };
    };
    const before = await read();
    expect(before).toEqual({ all: 60, sum: 10, busy: 3 });
    for (let round = 0; round < 2; round++) {
      await stage().upkeep.tidy();
      expect(await read()).toEqual(before);
      const rows = await stage().sql(
        "select enqueued from millrace.queue_count where queue_id = $1 order by minute",
        [queueId],
      );
      expect(rows.map(({ enqueued }) => Number(enqueued))).toEqual([11, 4, 5, 1]);
    }
  });

  it("forgets expired keys and producers that have gone", async () => {
    const queueId = await stage().queue();
    const [old, young] = [randomUUID(), randomUUID()];
    const jobs = [old, young].map((key) => stage().job(queueId, { key, requestHash: "aa" }));
    await stage().named.flush(jobs, { notice: null });
    await stage().sql(
      "update millrace.unique_name set expires_at = now() - interval '1 s' where key = $1",
      [old],
    );
    await stage().sql("update millrace.producer set seen_at = now() - interval '2 days'");
    await stage().upkeep.tidy();
    expect(await stage().store.findByKey("acme", old)).toBeNull();
    expect(await stage().store.findByKey("acme", young)).toBe(jobs[1]?.id);
    // A producer that only slept goes on under a new name.
    const next = stage().job(queueId);
    expect(await stage().put(next)).toEqual([next.id]);
    expect(await stage().stateOf(next.id)).toBe("ready");
  });

  it("forgets expired keys however many there are, and keeps those that live", async () => {
    const queueId = await stage().queue();
    const keys = Array.from({ length: 2_500 }, () => randomUUID());
    for (let i = 0; i < keys.length; i += 500) {
      const jobs = keys
        .slice(i, i + 500)
        .map((key) => stage().job(queueId, { key, requestHash: "aa" }));
      await stage().named.flush(jobs, { notice: null });
    }
    await stage().sql(
      "update millrace.unique_name set expires_at = now() - interval '1 s' where key = any($1)",
      [keys.slice(1)],
    );
    await stage().upkeep.tidy();
    const left = await stage().sql<{ key: string }>(
      "select key from millrace.unique_name where key = any($1)",
      [keys],
    );
    expect(left).toEqual([{ key: keys[0] }]);
  });

  it("knows about how many jobs are ready or running, since the last vacuum", async () => {
    await stage().put(...stage().jobs(await stage().queue(), 200));
    await stage().upkeep.vacuum();
    // An estimate: of pages that nothing has happened to only some are looked at.
    expect(await stage().upkeep.hotRows()).toBeGreaterThan(100);
  });

  it("vacuums, one process at a time", async () => {
    expect(await stage().upkeep.vacuum()).toBe(true);
    const other = await stage().session();
    await other.query("select pg_advisory_lock(hashtextextended('millrace.vacuum.millrace', 0))");
    expect(await stage().upkeep.vacuum()).toBe(false);
    await other.close();
    const [row] = await stage().sql<{ vacuums: number }>(
      "select vacuum_count::int as vacuums from pg_stat_user_tables where relname = 'job'",
    );
    expect(row?.vacuums).toBeGreaterThanOrEqual(0);
  });
};

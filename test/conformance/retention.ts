import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { verifyAudit } from "../../src/client/audit.ts";
import { until } from "../support/until.ts";
import { cancelled, dead, type Topic } from "./stage.ts";

export const retention: Topic = (stage) => {
  const prune = (auditDays: number | null = null) => stage().upkeep.prune({ auditDays });
  const tables = async (like: string) => {
    const rows = await stage().sql<{ name: string; attached: boolean }>(
      `select relname as name, relispartition as attached from pg_class
      where relnamespace = 'millrace'::regnamespace and relkind = 'r' and relname like $1 order by 1`,
      [like],
    );
    return rows;
  };
  /** What the trail would be, had its entries been written when they say. */
  const rechain = () =>
    stage().sql(`do $$
      declare entry record;
      begin
        set local session_replication_role = replica;
        update millrace.audit_head set no = 0, hash = decode(repeat('00', 32), 'hex');
        for entry in select * from millrace.audit order by no loop
          update millrace.audit_head h set no = entry.no, hash = sha256(h.hash || convert_to(millrace.audit_text(array[
            entry.no::text, to_char(entry.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), entry.tenant,
            entry.actor, entry.action, entry.target, entry.reason, entry.details::text]), 'UTF8'));
          update millrace.audit a set hash = h.hash from millrace.audit_head h where a.no = entry.no;
        end loop;
      end $$`);
  /** Partitions for days that are long over, as if they had been attached then. */
  const attachOld = async (days: number, from: number, count: number) =>
    stage().sql(
      "select millrace.attach_history($1::smallint, (now() at time zone 'utc')::date - $2::int, $3::int)",
      [days, from, count],
    );
  const dayAgo = (n: number) =>
    new Date(Date.now() - n * 86_400_000).toISOString().slice(0, 10).replaceAll("-", "");
  /** A job that completed so many days ago, in a queue that keeps history for so long. */
  const completed = async (retentionDays: number, daysAgo: number) => {
    const name = randomUUID();
    const queue = await stage().store.configureQueue("", name, { retentionDays });
    const job = await stage().running(queue.id);
    await stage().complete([job]);
    await stage().sql(
      "update millrace.history set finished_at = finished_at - $2 * interval '1 day' where id = $1",
      [job.id, daysAgo],
    );
    return job;
  };

  it("drops history that is past its queue's retention, and no other", async () => {
    await attachOld(7, 12, 11);
    await attachOld(30, 12, 11);
    const old = await completed(7, 9);
    const kept = [await completed(7, 6), await completed(30, 9)];
    const { partitions } = await prune();
    expect(partitions).toBe(5);
    expect(await stage().store.find([old.id])).toEqual([]);
    for (const job of kept) expect(await stage().stateOf(job.id)).toBe("completed");
    const names = (await tables("history_7_%")).map(({ name }) => name);
    // Today's hour decides nothing: a day is kept until its retention is over everywhere in it.
    expect(names[0]).toBe(`history_7_${dayAgo(7)}`);
    expect((await prune()).partitions).toBe(0);
  });

  it("forgets labels with the records of their jobs, and no others", async () => {
    await attachOld(9, 14, 13);
    const label = (id: string) =>
      stage().sql(
        "insert into millrace.job_label (tenant, name, value, job_id) values ('default', 'n', '1', $1)",
        [id],
      );
    const [old, kept] = [await completed(9, 12), await completed(9, 3)];
    const queue = await stage().store.configureQueue("", randomUUID(), { deadRetentionDays: 5 });
    const died = await stage().running(queue.id);
    await stage().settle(died, dead);
    await stage().sql(
      "update millrace.dead_job set finished_at = now() - interval '6 days' where id = $1",
      [died.id],
    );
    const ids = [old.id, kept.id, died.id];
    for (const id of ids) await label(id);
    await prune();
    const left = await stage().sql(
      "select job_id from millrace.job_label where job_id = any($1::uuid[])",
      [ids],
    );
    expect(left).toEqual([{ job_id: kept.id }]);
  });

  it("frees references with the records of their jobs, and no others", async () => {
    await attachOld(9, 16, 15);
    const named = async (id: string) => {
      const values = [`ref:1:${id}`, `key:${id}`, id];
      await stage().sql(
        "insert into millrace.unique_name (scope, key, job_id) values ($1, 'r', $3), ($2, 'k', $3)",
        values,
      );
      await stage().sql("update millrace.history set reference = 'r' where id = $1", [id]);
    };
    const [old, kept] = [await completed(9, 14), await completed(9, 3)];
    const queue = await stage().store.configureQueue("", randomUUID(), { deadRetentionDays: 5 });
    const died = await stage().running(queue.id);
    await stage().settle(died, dead);
    await stage().sql(
      "update millrace.dead_job set finished_at = now() - interval '6 days' where id = $1",
      [died.id],
    );
    const ids = [old.id, kept.id, died.id];
    for (const id of ids) await named(id);
    await prune();
    const left = await stage().sql<{ key: string; job_id: string }>(
      "select key, job_id from millrace.unique_name where job_id = any($1::uuid[]) order by key",
      [ids],
    );
    expect(left.filter(({ key }) => key === "r")).toEqual([{ key: "r", job_id: kept.id }]);
    expect(left.filter(({ key }) => key === "k")).toHaveLength(3);
  });

  it("holds up neither readers nor writers, and finishes later what somebody still reads", async () => {
    await attachOld(8, 10, 1);
    const reader = await stage().session();
    await reader.query("begin");
    await reader.query("select count(*) from millrace.history");
    const pruning = prune();
    await until("it waits for the reader", async () => {
      const [row] = await stage().sql<{ waits: boolean }>(
        `select exists (select from pg_stat_activity where datname = current_database()
          and wait_event_type = 'Lock' and query like '%detach partition%') as waits`,
      );
      return row?.waits;
    });
    // Whoever waits for this lock keeps all others from history.
    const locks = await stage().sql(
      `select c.relname, l.mode, l.granted from pg_locks l join pg_class c on c.oid = l.relation
      where l.mode = 'AccessExclusiveLock' and c.relkind = 'p'
        and l.database = (select oid from pg_database where datname = current_database())`,
    );
    expect(locks).toEqual([]);
    const job = await completed(8, 0);
    expect((await pruning).partitions).toBe(0);
    expect(await stage().stateOf(job.id)).toBe("completed");
    await reader.query("select count(*) from millrace.history");
    await reader.query("commit");
    await reader.close();
    expect((await prune()).partitions).toBe(1);
    expect(await tables(`history_8_${dayAgo(10)}`)).toEqual([]);
  });

  it("drops a table whose dropping was interrupted after its detaching", async () => {
    await attachOld(9, 12, 1);
    const name = `history_9_${dayAgo(12)}`;
    await stage().sql(`alter table millrace.history_9 detach partition millrace.${name}`);
    expect(await tables(name)).toEqual([{ name, attached: false }]);
    expect((await prune()).partitions).toBe(1);
    expect(await tables(name)).toEqual([]);
  });

  it("is done by one process at a time", async () => {
    await attachOld(10, 13, 1);
    const other = await stage().session();
    await other.query("select pg_advisory_lock(hashtextextended('millrace.prune.millrace', 0))");
    expect((await prune()).partitions).toBe(0);
    await other.close();
  });

  it("keeps dead letters until somebody deals with them, or as long as their queue says", async () => {
    const [forever, brief] = [await stage().queue(), await stage().queue()];
    await stage().sql("update millrace.queue set dead_retention_days = 3 where id = $1", [brief]);
    const buried = [];
    for (const queueId of [forever, brief, brief]) {
      const job = await stage().running(queueId);
      await stage().settle(job, dead);
      buried.push(job.id);
    }
    const age = (id: string | undefined, days: number) =>
      stage().sql(
        "update millrace.dead_job set finished_at = finished_at - $2 * interval '1 day' where id = $1",
        [id, days],
      );
    await age(buried[0], 1_000);
    await age(buried[1], 4);
    await age(buried[2], 2);
    expect((await prune()).deadLetters).toBe(1);
    const found = await stage().store.find(buried);
    expect(found.map(({ id }) => id).sort()).toEqual([buried[0], buried[2]].sort());
  });

  it("forgets the runs of ended jobs sooner than the jobs, if their queue says so", async () => {
    await attachOld(30, 12, 11);
    const settings = { timelineRetentionDays: 2 };
    const brief = await stage().store.configureQueue("", randomUUID(), settings);
    const kept = new Map<string, boolean>();
    for (const [queueId, daysAgo, isKept] of [
      [brief.id, 3, false],
      [brief.id, 1, true],
      [await stage().queue(), 3, true],
    ] as const) {
      const job = await stage().running(queueId);
      await stage().store.cancel(job.id, null);
      await stage().settle(job, cancelled);
      await stage().sql(
        "update millrace.history set finished_at = finished_at - $2 * interval '1 day' where id = $1",
        [job.id, daysAgo],
      );
      kept.set(job.id, isKept);
    }
    expect((await prune()).timelines).toBe(1);
    for (const [id, isKept] of kept) {
      const rows = await stage().sql<{ state: string; kept: boolean }>(
        "select state, timeline is not null as kept from millrace.history where id = $1",
        [id],
      );
      expect(rows).toEqual([{ state: "cancelled", kept: isKept }]);
    }
    expect((await prune()).timelines).toBe(0);
  });

  it("lets go of the beginning of the audit trail, which says so itself", async () => {
    const { audit } = stage().store.service;
    const add = (action: string) =>
      audit.add({ tenant: null, actor: "somebody", action, target: "x" });
    for (const action of ["first", "second", "third"]) await add(action);
    const before = await audit.head();
    expect((await prune()).auditEntries).toBe(0);
    expect((await prune(30)).auditEntries).toBe(0);
    await stage().sql(`set session_replication_role = replica;
      update millrace.audit set at = at - interval '39 days 12 hours' where no <= ${before.no - 1};
      reset session_replication_role`);
    await rechain();
    const [third] = await audit.list({}, null, 1);
    expect((await prune(39)).auditEntries).toBe(0);
    expect((await prune(30)).auditEntries).toBe(before.no - 1);
    const kept = await audit.list({}, null, 10);
    expect(kept.map(({ action }) => action)).toEqual(["audit_pruned", "third"]);
    expect(kept[0]?.details).toMatchObject({ through: before.no - 1, entries: before.no - 1 });
    expect(await verifyAudit(audit)).toMatchObject({ ok: true, entries: 2 });
    expect(await verifyAudit(audit, { no: before.no, hash: third?.hash ?? "" })).toMatchObject({
      ok: true,
    });
    expect(await verifyAudit(audit, { no: 1, hash: "00" })).toMatchObject({
      ...{ ok: false, problem: "the expected head is older than what is kept" },
    });
    // The rest is as safe as before.
    await expect(stage().sql("delete from millrace.audit")).rejects.toThrow("append-only");
    expect((await prune(30)).auditEntries).toBe(0);
  });

  it("finishes what was interrupted after the entry that says so", async () => {
    const { audit } = stage().store.service;
    for (let i = 0; i < 3; i++)
      await audit.add({ tenant: null, actor: "somebody", action: "again", target: "x" });
    const [entry] = await audit.list({}, null, 1);
    const details = { through: entry?.no, hash: entry?.hash };
    await audit.add({
      ...{ tenant: null, actor: "millrace", action: "audit_pruned", target: "audit", details },
    });
    expect(await verifyAudit(audit)).toMatchObject({ ok: true, entries: 1 });
    expect((await prune(30)).auditEntries).toBeGreaterThanOrEqual(3);
    expect(await verifyAudit(audit)).toMatchObject({ ok: true, entries: 1 });
  });

  it("has a partition for a week without any process, and any process attaches the next ones", async () => {
    // A week after the last process looked, seven days are left.
    for (const { name } of await tables("history_30_%")) {
      const day = name.slice(-8);
      if (day <= dayAgo(-7)) continue;
      await stage().sql(`drop table millrace.${name}`);
    }
    const before = await tables("history_30_%");
    expect(before.at(-1)?.name).toBe(`history_30_${dayAgo(-7)}`);
    expect(await stage().store.leadership()).toMatchObject({ term: 0, inOffice: false });
    const job = await stage().running(await stage().queue());
    expect(await stage().complete([job])).toBe(1);
    await stage().store.attachHistory();
    expect((await tables("history_30_%")).at(-1)?.name).toBe(`history_30_${dayAgo(-14)}`);
  });
};

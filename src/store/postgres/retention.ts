// What is past its retention goes: history by whole partitions, dead letters by the batch.
//
// DETACH CONCURRENTLY locks out neither readers nor writers of history, but it cannot be part of a
// transaction: a leader's term is checked before it, and two processes at it at once do no harm.

import type { Pruned, Retention } from "../upkeep.ts";
import type { Connection } from "./connection.ts";
import { isMissingRight, isRetryable } from "./failures.ts";
import { forgetPayloads } from "./long-payload.ts";
import { type Runner, type Statement, statement } from "./statement.ts";
import { exclusively } from "./upkeep.ts";

// history_<days>_<YYYYMMDD>; a table that is no partition is one whose dropping was interrupted.
const listOver = statement(
  "list_over_partitions",
  `select c.relname as name, 'history_' || n.days as parent,
    case when not c.relispartition then 'detached' when i.inhdetachpending then 'pending' else 'attached' end as state
  from pg_class c
  cross join lateral (select (regexp_match(c.relname, '^history_(\\d+)_(\\d{8})$'))[1] as days,
    (regexp_match(c.relname, '^history_(\\d+)_(\\d{8})$'))[2] as day) n
  left join pg_inherits i on i.inhrelid = c.oid
  where c.relnamespace = $1::text::regnamespace and c.relkind = 'r' and n.day is not null
    and to_date(n.day, 'YYYYMMDD') + n.days::int < (now() at time zone 'utc')::date
  order by n.day limit $2::int`,
);

/** Idempotency keys have an end of their own. */
const ofReferences = "scope like 'ref:%'";

const buryDead = statement(
  "forget_dead_letters",
  `with gone as (
    delete from millrace.dead_job where ctid = any (array(
      select d.ctid from millrace.queue q cross join (values ('dead'), ('discarded')) s (state)
      cross join lateral (
        select ctid from millrace.dead_job d where d.queue_id = q.id and d.state = s.state
          and d.finished_at < now() - q.dead_retention_days * interval '1 day'
        order by d.finished_at limit $1::int
      ) d
      where q.dead_retention_days is not null limit $1::int))
    returning id
  ),
  unnamed as (delete from millrace.unique_name where ${ofReferences} and job_id in (select id from gone)),
  unlabelled as (delete from millrace.job_label where job_id in (select id from gone)),
  emptied as (${forgetPayloads("gone")})
  select count(*)::int as gone from gone`,
);

const hasNames = (partition: string) =>
  statement(
    "",
    `select exists (select from millrace.job_label) or exists (select from millrace.long_payload)
      or exists (select from millrace."${partition}" where reference is not null) as some`,
  );

// Of a partition that is detached and not dropped yet.
const forgetNames = (partition: string) =>
  statement(
    "",
    `with old as materialized (
    select id from millrace."${partition}" where id > $1::uuid order by id limit $2::int
  ),
  unnamed as (delete from millrace.unique_name where ${ofReferences} and job_id in (select id from old)),
  unlabelled as (delete from millrace.job_label where job_id in (select id from old)),
  emptied as (${forgetPayloads("old")})
  select id as last from old order by id desc limit 1`,
  );

const forgetTimelines = statement(
  "forget_timelines",
  `with over as materialized (
    select o.* from millrace.queue q cross join lateral (
      select h.id, h.finished_at, h.retention_days from millrace.history h
      where h.queue_id = q.id and h.timeline is not null
        and h.finished_at < now() - q.timeline_retention_days * interval '1 day'
      limit $1::int
    ) o
    where q.timeline_retention_days is not null limit $1::int
  ),
  gone as (
    update millrace.history h set timeline = null from over o
    where h.id = o.id and h.finished_at = o.finished_at and h.retention_days = o.retention_days returning 1
  )
  select count(*)::int as gone from gone`,
);

// Once a day at most, or the entries that tell of it would follow each other for ever. What was written
// at about the same time may have its number in another order: the first that is to stay ends it.
const sayPruned = statement(
  "say_audit_pruned",
  `with oldest as materialized (
    select no, at, hash from millrace.audit order by no limit $1::int
  ),
  kept as (
    select min(no) as no from oldest where at >= now() - $2::int * interval '1 day'
  ),
  last as (
    select no, hash from oldest where no < coalesce((select no from kept), no + 1)
      and exists (select from oldest where at < now() - ($2::int + 1) * interval '1 day')
    order by no desc limit 1
  )
  insert into millrace.audit (actor, action, target, details)
  select 'millrace', 'audit_pruned', 'audit', json_build_object('through', no, 'hash', encode(hash, 'hex'),
    'entries', (select count(*) from oldest o where o.no <= last.no), 'days', $2::int)
  from last
  returning no`,
);

const forgetAudit = statement(
  "forget_audit",
  `with last as materialized (
    select (details->>'through')::bigint as no from millrace.audit where action = 'audit_pruned'
    order by millrace.audit.no desc limit 1
  ),
  gone as (delete from millrace.audit where no <= (select no from last) returning 1)
  select count(*)::int as gone from gone`,
);

const stillThere = statement("still_there", "select");

const mostPartitions = 10;
const rowsAtOnce = 1_000;
const auditAtOnce = 10_000;
const beforeAll = "00000000-0000-0000-0000-000000000000";

export async function prune(
  connection: Connection,
  writer: Runner,
  schema: string,
  { auditDays }: Retention,
): Promise<Pruned> {
  const pruned = { partitions: 0, deadLetters: 0, timelines: 0, auditEntries: 0 };
  await exclusively(connection, `millrace.prune.${schema}`, async () => {
    await writer.query(stillThere);
    pruned.partitions = await dropOver(connection, schema);
    pruned.deadLetters = await repeat(writer, buryDead);
    pruned.timelines = await repeat(writer, forgetTimelines);
    if (auditDays !== null) pruned.auditEntries = await shortenAudit(writer, auditDays);
  });
  return pruned;
}

/** A batch at a time, each in a transaction of its own. */
async function repeat(writer: Runner, source: Statement): Promise<number> {
  for (let all = 0; ; ) {
    const rows = await writer.query<{ gone: number }>(source, [String(rowsAtOnce)]);
    const gone = rows[0]?.gone ?? 0;
    all += gone;
    if (gone < rowsAtOnce) return all;
  }
}

/** The entry that says so comes first: whoever dies in between leaves the rest to the next round. */
async function shortenAudit(writer: Runner, days: number): Promise<number> {
  for (let all = 0; ; ) {
    const said = await writer.query(sayPruned, [String(auditAtOnce), String(days)]);
    const [row] = await writer.query<{ gone: number }>(forgetAudit);
    all += row?.gone ?? 0;
    if (said.length === 0 || (row?.gone ?? 0) < auditAtOnce) return all;
  }
}

type OverRow = { name: string; parent: string; state: "attached" | "pending" | "detached" };

/**
 * What somebody's long transaction still reads is left for the next round, and what a role without the
 * right to drop tables must leave alone, for a manager that has it.
 */
async function dropOver(connection: Connection, schema: string): Promise<number> {
  const over = await connection.query<OverRow>(listOver, [quoted(schema), String(mostPartitions)]);
  let dropped = 0;
  for (const { name, parent, state } of over) {
    const how = state === "pending" ? "finalize" : "concurrently";
    try {
      if (state !== "detached")
        await connection.query(
          statement(
            "",
            `alter table millrace."${parent}" detach partition millrace."${name}" ${how}`,
          ),
        );
      await dropNames(connection, name);
      await connection.query(statement("", `drop table millrace."${name}"`));
      dropped++;
    } catch (error) {
      if (isMissingRight(error)) return dropped;
      if (!isRetryable(error)) throw error;
    }
  }
  return dropped;
}

/** Labels, references and long payloads go with the records of their jobs. */
async function dropNames(connection: Connection, partition: string): Promise<void> {
  const [names] = await connection.query<{ some: boolean }>(hasNames(partition));
  if (names?.some !== true) return;
  for (let last: string | undefined = beforeAll; last !== undefined; ) {
    const values: string[] = [last, String(rowsAtOnce)];
    const rows = await connection.query<{ last: string }>(forgetNames(partition), values);
    last = rows[0]?.last;
  }
}

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

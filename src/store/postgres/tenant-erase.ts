// Erasing what a tenant's jobs hold, a batch at a time. The rows stay, so that counts, audit entries and
// links keep their meaning; what they said is gone, and a hash says what it was.

import type { Erased, ErasePlace, TenantAdmin } from "../tenant-admin.ts";
import type { Database } from "./database.ts";
import { forgetPayloads, payloadTextOf } from "./long-payload.ts";
import { type Statement, statement } from "./statement.ts";
import { countTenants } from "./tenant-count.ts";
import { isTenant, tenantNames } from "./tenant-names.ts";

/** A hash with the tenant's name in it: nobody can tell that two tenants had the same value. */
const hashed = (value: string) =>
  `'sha256:' || encode(sha256(convert_to($1::text || chr(10) || ${value}, 'UTF8')), 'hex')`;

const names = (row: string) =>
  ["correlation_id", "idempotency_key", "reference"].map((column) => hashed(`${row}.${column}`));

/** What meta keeps: what the job is, not what it is about. */
const meta = (
  row: string,
) => `json_strip_nulls(json_build_object('category', ${row}.meta->'category',
      'reprocessOf', ${row}.meta->'reprocessOf', 'trigger', ${row}.meta->'trigger', 'slot', ${row}.meta->'slot',
      'erased', json_build_object('at', now(), 'payload', ${hashed(payloadTextOf(`${row}.`))})))`;

const timeline = (row: string) =>
  `(select json_agg(e - 'message') from jsonb_array_elements(${row}.timeline::jsonb) e)`;

const taken = `id, created_at, queue_id, claim_no, weight, attempt, max_attempts, crash_count, type, payload,
      correlation_id, idempotency_key, reference, meta, timeline`;

const eraseWaiting = (name: string, mine: string) =>
  statement(
    name,
    `with waiting as (
    delete from millrace.job where ctid = any (array(
      select ctid from millrace.job where ${mine} and claim_id is null limit $2::int for update skip locked))
      and claim_id is null
    returning ${taken}
  ),
  delayed as (
    delete from millrace.scheduled_job where ctid = any (array(
      select ctid from millrace.scheduled_job where ${mine} limit $2::int for update skip locked))
    returning ${taken}
  ),
  gone as (select * from waiting union all select * from delayed),
  archived as (
    insert into millrace.history (id, state, created_at, finished_at, queue_id, claim_no, retention_days, weight,
      attempt, max_attempts, crash_count, type, tenant, payload, correlation_id, idempotency_key, reference, meta,
      timeline, closed_reason)
    select g.id, 'deleted', g.created_at, now(), g.queue_id, g.claim_no, q.retention_days, g.weight, g.attempt,
      g.max_attempts, g.crash_count, g.type, $1::text, 'null', ${names("g").join(", ")}, ${meta("g")},
      ${timeline("g")}, 'erased'
    from gone g join millrace.queue q on q.id = g.queue_id
  ),
  unnamed as (delete from millrace.unique_name where job_id in (select id from gone)),
  unlabelled as (delete from millrace.job_label where job_id in (select id from gone)),
  emptied as (${forgetPayloads("gone")}),
  counted as (
    insert into millrace.queue_count (queue_id, process, minute, removed)
    select queue_id, gen_random_uuid(), date_trunc('minute', now()), count(*) from gone group by queue_id
  ),
  tenants_counted as (
    ${countTenants("(select *, $1::text as tenant from gone)", "-", "gen_random_uuid()")}
  )
  select count(*)::int as gone from gone`,
  );

const emptied = (row: string) => {
  const [correlation, key, reference] = names(row);
  return `payload = 'null', result = null, correlation_id = ${correlation}, idempotency_key = ${key},
      reference = ${reference}, meta = ${meta(row)}, timeline = ${timeline(row)}, closed_reason = 'erased'`;
};

// One that was reprocessed keeps counting as failed; any other is closed, for there is nothing to run again.
const eraseDead = (name: string, mine: string) =>
  statement(
    name,
    `with looked as materialized (
    select id from millrace.dead_job where ${mine} and id > $2::uuid order by id limit $3::int
  ),
  erased as (
    update millrace.dead_job d set ${emptied("d")},
      exception_type = case when millrace.is_business(d.exception_type, d.result, d.error_message)
        then 'business' else 'application' end,
      error_message = 'erased', error_stack = null, closed_at = coalesce(d.closed_at, now()),
      state = case when d.reprocessed_as is null then 'discarded' else d.state end
    from looked l where d.id = l.id and d.tenant = $1::text and (d.meta->'erased') is null
    returning d.id
  ),
  unnamed as (delete from millrace.unique_name where job_id in (select id from erased)),
  unlabelled as (delete from millrace.job_label where job_id in (select id from erased)),
  emptied as (${forgetPayloads("erased")})
  select (select count(*) from looked)::int as looked, (select count(*) from erased)::int as erased,
    (select id from looked order by id desc limit 1) as last`,
  );

const eraseHistory = (name: string, mine: string) =>
  statement(
    name,
    `with looked as materialized (
    select id, finished_at, retention_days from millrace.history where ${mine} and id > $2::uuid
    order by id limit $3::int
  ),
  erased as (
    update millrace.history h set ${emptied("h")},
      state = case when h.state in ('cancelled', 'expired') and h.reprocessed_as is null then 'deleted' else h.state end
    from looked l where h.id = l.id and h.finished_at = l.finished_at and h.retention_days = l.retention_days
      and h.tenant = $1::text and (h.meta->'erased') is null
    returning h.id
  ),
  unnamed as (delete from millrace.unique_name where job_id in (select id from erased)),
  unlabelled as (delete from millrace.job_label where job_id in (select id from erased)),
  emptied as (${forgetPayloads("erased")})
  select (select count(*) from looked)::int as looked, (select count(*) from erased)::int as erased,
    (select id from looked order by id desc limit 1) as last`,
  );

// Keys outlive their jobs, and what is not told yet is told to nobody.
const eraseBeside = statement(
  "erase_beside",
  `with untold as (delete from millrace.notification where tenant = $1::text),
  gone as (
    delete from millrace.unique_name where ctid = any (array(
      select n.ctid from millrace.unique_name n where n.scope = 'key:' || $1::text
        and not exists (select from millrace.job j where j.id = n.job_id)
        and not exists (select from millrace.scheduled_job j where j.id = n.job_id) limit $2::int))
    returning 1
  )
  select count(*)::int as gone from gone`,
);

const running = statement(
  "running_of_tenant",
  `select x.id from millrace.claim c cross join unnest(c.job_ids) x (id)
  cross join lateral (
    select from millrace.job j where j.id = x.id and j.claim_id = c.id and j.tenant = $1::text limit 1
  ) held
  limit $2::int`,
);

// Indexes by tenant leave the usual tenant out: its rows are most of the table, and are walked by id.
const byTenant = "tenant = $1::text and tenant <> 'default'";
const named = {
  waiting: eraseWaiting("erase_waiting", byTenant),
  dead_job: eraseDead("erase_dead", byTenant),
  history: eraseHistory("erase_history", byTenant),
};
const usual = {
  waiting: eraseWaiting("erase_waiting_usual", "tenant = $1::text"),
  dead_job: eraseDead("erase_dead_usual", "true"),
  history: eraseHistory("erase_history_usual", "true"),
};
const of = (tenant: string) => (tenant === "default" ? usual : named);

const rowsAtOnce = 1_000;
const batchesPerCall = 20;
const beforeAll = "00000000-0000-0000-0000-000000000000";
const afterAll = "ffffffff-ffff-ffff-ffff-ffffffffffff";

export function createTenantAdmin(database: Database): TenantAdmin {
  const inBatches = async (source: Statement, tenant: string) => {
    let gone = 0;
    for (let batches = 0; batches < batchesPerCall; batches++) {
      const [row] = await database.query<{ gone: number }>(source, [tenant, rowsAtOnce]);
      if ((row?.gone ?? 0) === 0) return { gone, isAll: true };
      gone += row?.gone ?? 0;
    }
    return { gone, isAll: false };
  };
  return {
    names: async (after, limit) =>
      (await database.query<{ name: string }>(tenantNames, [after, limit])).map(({ name }) => name),
    isKnown: async (name) =>
      (await database.query<{ known: boolean }>(isTenant, [name]))[0]?.known ?? false,
    running: async (name, limit) =>
      (await database.query<{ id: string }>(running, [name, limit])).map(({ id }) => id),
    eraseWaiting: (name) => inBatches(of(name).waiting, name),
    async eraseEnded(name, place) {
      const erased = await eraseEnded(database, name, place);
      if (erased.next !== null || (await inBatches(eraseBeside, name)).isAll) return erased;
      return { ...erased, next: { table: "history", after: afterAll } };
    },
  };
}

async function eraseEnded(
  database: Database,
  tenant: string,
  from: ErasePlace | null,
): Promise<Erased> {
  const done = { dead_job: 0, history: 0 };
  let place: ErasePlace = from ?? { table: "dead_job", after: beforeAll };
  for (let batches = 0; batches < batchesPerCall; batches++) {
    const { erased, next } = await eraseBatch(database, tenant, place);
    done[place.table] += erased;
    if (next === null) return { deadLetters: done.dead_job, history: done.history, next };
    place = next;
  }
  return { deadLetters: done.dead_job, history: done.history, next: place };
}

type BatchRow = { looked: number; erased: number; last: string | null };

async function eraseBatch(
  database: Database,
  tenant: string,
  { table, after }: ErasePlace,
): Promise<{ erased: number; next: ErasePlace | null }> {
  const values = [tenant, after, rowsAtOnce];
  const [row] = await database.query<BatchRow>(of(tenant)[table], values);
  const { looked, erased, last } = row ?? { looked: 0, erased: 0, last: null };
  if (looked === rowsAtOnce && last !== null) return { erased, next: { table, after: last } };
  const behind: ErasePlace = { table: "history", after: beforeAll };
  return { erased, next: table === "dead_job" ? behind : null };
}

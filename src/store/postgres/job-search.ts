// Finding jobs in all four tables, the newest first, never by a full scan: what has an index is looked
// up, and everything else is a walk by id (UUIDv7, so by age) over so many rows per table and page.

import type { JobState } from "../../domain/job-state.ts";
import type { JobFilter, JobPage, JobSummary } from "../job-search.ts";
import type { Reader } from "./database.ts";
import { statement } from "./statement.ts";

const common = `id, type, queue_id, tenant, weight, attempt, max_attempts, correlation_id, idempotency_key, reference,
      created_at`;
const tables = {
  job: `${common}, case when claim_id is null then 'ready' else 'running' end as state, null::timestamptz as due_at,
      started_at, null::timestamptz as finished_at, null as error_class, null as error_message`,
  scheduled_job: `${common}, 'scheduled' as state, due_at, null::timestamptz as started_at,
      null::timestamptz as finished_at, null as error_class, null as error_message`,
  dead_job: `${common}, state, null::timestamptz as due_at, started_at, finished_at, error_class, error_message`,
  history: `${common}, state, null::timestamptz as due_at, started_at, finished_at, null as error_class, null as error_message`,
};
const names = Object.keys(tables) as (keyof typeof tables)[];

/** A table that holds none of the wanted states is not walked: few wait where many have ended. */
const statesIn: Record<keyof typeof tables, string> = {
  job: "{ready,running}",
  scheduled_job: "{scheduled}",
  dead_job: "{dead,discarded}",
  history: "{completed,cancelled,expired,discarded,deleted}",
};

const fits = `($2::int[] is null or f.queue_id = any($2::int[])) and ($3::text is null or f.type = $3::text)
    and ($4::text[] is null or f.state = any($4::text[]))
    and ($5::timestamptz is null or f.created_at >= $5::timestamptz)
    and ($6::timestamptz is null or f.created_at < $6::timestamptz)
    and ($1::text is null or f.tenant = $1::text)`;

const found = (from: string, condition: string) => `(
    select json_agg(f) from (
      select f.*, q.name as queue from (${from}) f join millrace.queue q on q.id = f.queue_id and q.deleted_at is null
      where ${condition} order by f.id desc limit $8::int
    ) f)`;

// Rows are looked at in order of id, at most $9 of each table. Where one of them had more, nothing below
// the last row it showed may be shown yet: that is the edge, from which the next page goes on.
const walk = (name: string, mine: string) =>
  statement(
    name,
    `with ${names
      .map(
        (table) => `${table}_rows as materialized (
    select ${tables[table]} from millrace.${table} where ${mine} and id < $7::uuid
      and ($4::text[] is null or $4::text[] && '${statesIn[table]}'::text[]) order by id desc limit $9::int
  )`,
      )
      .join(", ")},
  edge as (
    select e.id from (${names
      .map(
        (table) =>
          `select (select id from ${table}_rows order by id limit 1) as id, (select count(*) from ${table}_rows) as looked`,
      )
      .join(" union all ")}) e
    where e.looked >= $9::int order by e.id desc limit 1
  )
  select (select id from edge) as edge,
    ${found(
      names.map((table) => `select * from ${table}_rows`).join(" union all "),
      `${fits} and f.id >= coalesce((select id from edge), '00000000-0000-0000-0000-000000000000')`,
    )} as jobs`,
  );

const walkAll = walk("walk_jobs", "true");
const walkTenant = walk("walk_tenant_jobs", "tenant = $1::text and tenant <> 'default'");

const readThese = statement(
  "read_found_jobs",
  `select null::uuid as edge, ${found(
    names
      .map(
        (table) =>
          `select ${tables[table]} from millrace.${table} where id = any($10::uuid[]) and $9::int is not null`,
      )
      .join(" union all "),
    `${fits} and f.id < $7::uuid`,
  )} as jobs`,
);

const idsBy = (name: string, column: string) =>
  statement(
    name,
    `select id from (${names
      .map(
        (table) =>
          `(select id from millrace.${table} where ${column} = $1::text and ${column} is not null and id < $2::uuid
        order by id desc limit 1000)`,
      )
      .join(" union all ")}) f order by id desc limit 1000`,
  );
const idsByReference = idsBy("find_by_reference", "reference");
const idsByCorrelation = idsBy("find_by_correlation", "correlation_id");

const idsByLabel = statement(
  "find_by_label",
  `select job_id as id from millrace.job_label
  where tenant = $1::text and name = $2::text and value = $3::text and job_id < $4::uuid
  order by job_id desc limit 1000`,
);

const idsByKey = statement(
  "find_by_key",
  `select job_id as id from millrace.unique_name where scope = 'key:' || $1::text and key = $2::text`,
);

type FoundRow = {
  id: string;
  type: string;
  queue_id: number;
  queue: string;
  tenant: string;
  state: JobState;
  weight: number;
  attempt: number;
  max_attempts: number;
  correlation_id: string | null;
  idempotency_key: string | null;
  reference: string | null;
  created_at: string;
  due_at: string | null;
  started_at: string | null;
  finished_at: string | null;
  error_class: string | null;
  error_message: string | null;
};

const afterAll = "ffffffff-ffff-ffff-ffff-ffffffffffff";
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const rowsPerTable = 2_000;

export async function searchJobs(
  database: Reader,
  filter: JobFilter,
  before: string | null,
  limit: number,
): Promise<JobPage> {
  const looked = await lookUp(database, filter, before ?? afterAll);
  const ids = looked?.ids ?? null;
  const parameters = [
    filter.tenant ?? null,
    filter.queueIds ?? null,
    filter.type ?? null,
    filter.states ?? null,
    filter.createdFrom ?? null,
    filter.createdTo ?? null,
    before ?? afterAll,
    // One more than wanted tells whether there is a next page.
    limit + 1,
    Math.max(rowsPerTable, 2 * limit),
  ];
  const isNamed = filter.tenant !== undefined && filter.tenant !== "default";
  const [row] = await database.query<{ edge: string | null; jobs: FoundRow[] | null }>(
    ids !== null ? readThese : isNamed ? walkTenant : walkAll,
    ids === null ? parameters : [...parameters, ids],
  );
  const jobs = (row?.jobs ?? []).map(toSummary);
  const shown = jobs.slice(0, limit);
  const edge = looked === null ? (row?.edge ?? null) : looked.edge;
  const next = jobs.length > limit ? (shown.at(-1)?.id ?? null) : edge;
  return { jobs: shown, next };
}

interface LookedUp {
  readonly ids: string[];
  /** An index had more than was looked at: nothing below this id is in `ids`. */
  readonly edge: string | null;
}

const mostLookedUp = 1_000;

/** The ids that an index knows; null: nothing was asked for that has one. */
async function lookUp(
  database: Reader,
  { id, key, correlationId, reference, label, tenant = "default" }: JobFilter,
  before: string,
): Promise<LookedUp | null> {
  const lists: string[][] = [];
  const edges: string[] = [];
  const ask = async (...call: Parameters<Reader["query"]>) => {
    const found = (await database.query<{ id: string }>(...call)).map((row) => row.id);
    const last = found.at(-1);
    if (found.length >= mostLookedUp && last !== undefined) edges.push(last);
    return found;
  };
  if (id !== undefined) lists.push(uuid.test(id) ? [id.toLowerCase()] : []);
  // A generated key or correlation is the id itself.
  const own = (text: string) => (uuid.test(text) ? [text.toLowerCase()] : []);
  if (key !== undefined) lists.push([...own(key), ...(await ask(idsByKey, [tenant, key]))]);
  if (correlationId !== undefined)
    lists.push([...own(correlationId), ...(await ask(idsByCorrelation, [correlationId, before]))]);
  if (reference !== undefined) lists.push(await ask(idsByReference, [reference, before]));
  if (label !== undefined)
    lists.push(await ask(idsByLabel, [tenant, label.name, label.value, before]));
  const [first, ...others] = lists;
  if (first === undefined) return null;
  const edge = edges.sort().at(-1) ?? null;
  const ids = first.filter(
    (one) => (edge === null || one >= edge) && others.every((list) => list.includes(one)),
  );
  return { ids, edge };
}

const toDate = (text: string | null) => (text === null ? null : new Date(text));

const toSummary = (row: FoundRow): JobSummary => ({
  id: row.id,
  type: row.type,
  queueId: row.queue_id,
  queue: row.queue,
  tenant: row.tenant,
  state: row.state,
  weight: row.weight,
  attempt: row.attempt,
  maxAttempts: row.max_attempts,
  correlationId: row.correlation_id ?? row.id,
  idempotencyKey: row.idempotency_key ?? row.id,
  reference: row.reference,
  createdAt: new Date(row.created_at),
  dueAt: toDate(row.due_at),
  startedAt: toDate(row.started_at),
  finishedAt: toDate(row.finished_at),
  errorClass: row.error_class,
  errorMessage: row.error_message,
});

// Fills a database with jobs to measure by: most in history, the rest ready, delayed and dead, of many
// tenants, queues and types, some with references, keys and labels. Usage:
//   DATABASE_URL=postgres://… node scripts/generate-jobs.mjs [--jobs 10000000] [--schema millrace]

import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import pg from "pg";

const perBatch = 50_000;
const queues = 20;
const days = 29;
const retention = 30;
const second = 1_000;
const day = 86_400 * second;

/** Out of a hundred jobs. */
const shares = { history: 90, ready: 5, delayed: 2, dead: 3 };

const columns = `id, created_at, queue_id, weight, max_attempts, type, tenant, payload, reference, correlation_id,
  idempotency_key`;

// $1 how many, $2 where the numbers begin, $3 and $4 between which times: time goes on from batch to batch,
// as it does when jobs are really made, and ids are as old as their jobs. A third of all jobs is the usual
// tenant's; of the others a few have most.
const drawn = `drawn as materialized (
  select n, md5(n::text) as hash, random() as draw, $3::timestamptz
      + ($4::timestamptz - $3::timestamptz) * ((n - $2::int)::float8 / $1::int) as created_at,
    case when random() < 0.33 then 'default' else 'tenant-' || floor(200 * power(random(), 3)) end as tenant,
    (floor(${queues} * power(random(), 2)))::int as queue, (floor(50 * power(random(), 2)))::int as kind
  from generate_series($2::int, $2::int + $1::int - 1) n
),
made as materialized (
  select d.*, (lpad(to_hex((extract(epoch from d.created_at) * 1000)::bigint), 12, '0') || '7'
      || left(d.hash, 3) || '8' || substr(d.hash, 4, 15))::uuid as id, q.id as queue_id,
    5::smallint as weight, 5::smallint as max_attempts, 'type-' || d.kind as type,
    ('{"customer":' || d.n % 100000 || ',"order":"' || d.hash || '","note":"' || repeat('x', 100) || '"}')::json as payload,
    case when d.n % 5 = 0 then 'ref-' || d.n end as reference,
    case when d.n % 10 = 1 then 'corr-' || d.n / 3 end as correlation_id,
    case when d.n % 20 = 2 then 'key-' || d.n end as idempotency_key
  from drawn d join millrace.queue q on q.tenant = '' and q.name = 'load-' || d.queue
),
labelled as (
  insert into millrace.job_label (tenant, name, value, job_id)
  select tenant, 'customer', (n % 100000)::text, id from made where n % 10 = 3
),
named as (
  insert into millrace.unique_name (scope, key, job_id, expires_at)
  select 'key:' || tenant, idempotency_key, id, now() + interval '30 days' from made where idempotency_key is not null
  on conflict do nothing
)`;

const counted = (
  column,
) => `insert into millrace.queue_count (queue_id, process, minute, enqueued, ${column})
  select queue_id, gen_random_uuid(), date_trunc('minute', now()), count(*), count(*) from inserted group by queue_id`;

const intoHistory = (table) => `with ${drawn},
  inserted as (
    insert into millrace.${table} (${columns}, state, started_at, finished_at, claim_no, retention_days, attempt,
      crash_count, worker, result)
    select ${columns}, case when draw < 0.97 then 'completed' when draw < 0.99 then 'cancelled' else 'expired' end,
      created_at + interval '1 s', created_at + interval '1 s' + draw * interval '2 s', 1, ${retention}, 1, 0,
      'worker-' || n % 8, json_build_object('ok', true)
    from made returning queue_id, state
  )
  insert into millrace.queue_count (queue_id, process, minute, enqueued, completed, removed)
  select queue_id, gen_random_uuid(), date_trunc('minute', now()), count(*),
    count(*) filter (where state = 'completed'), count(*) filter (where state <> 'completed')
  from inserted group by queue_id`;

const inserts = {
  ready: `with ${drawn},
  inserted as (
    insert into millrace.job (${columns}, seq, ready_at)
    select ${columns}, nextval('millrace.flush_seq') * 1024, created_at from made returning queue_id
  )
  insert into millrace.queue_count (queue_id, process, minute, enqueued)
  select queue_id, gen_random_uuid(), date_trunc('minute', now()), count(*) from inserted group by queue_id`,
  delayed: `with ${drawn},
  inserted as (
    insert into millrace.scheduled_job (${columns}, due_at)
    select ${columns}, now() + interval '1 hour' + draw * interval '10 days' from made returning queue_id
  )
  insert into millrace.queue_count (queue_id, process, minute, enqueued)
  select queue_id, gen_random_uuid(), date_trunc('minute', now()), count(*) from inserted group by queue_id`,
  dead: `with ${drawn},
  inserted as (
    insert into millrace.dead_job (${columns}, started_at, finished_at, claim_no, attempt, crash_count, worker,
      error_class, error_fingerprint, error_message)
    select ${columns}, created_at + interval '1 s', created_at + interval '3 s', 5, 5, 0, 'worker-' || n % 8,
      case when draw < 0.8 then 'retryable' else 'fatal' end, md5((n % 300)::text),
      'HTTP 503 from upstream ' || n % 300
    from made returning queue_id
  )
  ${counted("dead")}`,
};

/** The schema must be there. Resolves with how many of each were made. */
export async function generateJobs({ url, jobs, schema = "millrace", onProgress = () => {} }) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const run = async (sql, values) => {
    const text = sql.replace(/\bmillrace\./g, `${pg.escapeIdentifier(schema)}.`);
    return (await client.query(text, values)).rows;
  };
  let done = 0;
  const fill = async (sql, count, from, to) => {
    for (let at = 0; at < count; at += perBatch) {
      const size = Math.min(perBatch, count - at);
      const time = (part) => new Date(from + ((to - from) * part) / count);
      await run(sql, [size, done + 1, time(at), time(at + size)]);
      done += size;
      onProgress(done, jobs);
    }
    return count;
  };
  try {
    await client.query("set synchronous_commit = off");
    await client.query("set jit = off");
    await run(
      `insert into millrace.queue (tenant, name, retention_days)
      select '', 'load-' || n, ${retention} from generate_series(0, ${queues - 1}) n on conflict do nothing`,
    );
    await run(
      `select millrace.attach_history(${retention}::smallint, (now() at time zone 'utc')::date, 3)`,
    );
    const made = {
      history: await fillHistory(run, fill, Math.floor((jobs * shares.history) / 100)),
    };
    const until = Date.now() - 300 * second;
    for (const kind of Object.keys(inserts)) {
      const count = Math.floor((jobs * shares[kind]) / 100);
      made[kind] = await fill(inserts[kind], count, until - days * day, until);
    }
    await run(
      "analyze millrace.job, millrace.scheduled_job, millrace.dead_job, millrace.history, millrace.job_label",
    );
    return made;
  } finally {
    await client.end();
  }
}

/** A day at a time, each filled before it becomes a partition: indexes are built once, and not row by row. */
async function fillHistory(run, fill, count) {
  const today = Math.floor(Date.now() / day) * day;
  const perDay = Math.ceil(count / days);
  let made = 0;
  for (let ago = days; ago > 0 && made < count; ago--) {
    const from = today - ago * day;
    const date = new Date(from).toISOString().slice(0, 10);
    const table = `history_${retention}_${date.replaceAll("-", "")}`;
    const [{ isThere }] = await run(
      `select to_regclass('millrace.${table}') is not null as "isThere"`,
    );
    if (!isThere)
      await run(
        `create table millrace.${table} (like millrace.history_${retention} including defaults including storage
          including constraints) with (toast_tuple_target = 600)`,
      );
    const size = Math.min(perDay, count - made);
    made += await fill(intoHistory(table), size, from, from + day - 10 * second);
    if (!isThere)
      await run(
        `alter table millrace.history_${retention} attach partition millrace.${table}
          for values from ('${date} 00:00:00+00') to ('${new Date(from + day).toISOString().slice(0, 10)} 00:00:00+00')`,
      );
  }
  return made;
}

async function main() {
  const { values } = parseArgs({
    options: {
      jobs: { type: "string", default: "10000000" },
      schema: { type: "string", default: "millrace" },
    },
  });
  const jobs = Number(values.jobs);
  const url = process.env.DATABASE_URL;
  if (url === undefined || !Number.isInteger(jobs) || jobs < 100) {
    console.error("Needs DATABASE_URL, and --jobs of at least 100.");
    process.exitCode = 2;
    return;
  }
  const { Millrace } = await import("../dist/index.js");
  const { schema } = values;
  await (await Millrace.connect({ databaseUrl: url, schema, logLevel: "warn" })).stop();
  const began = Date.now();
  const onProgress = (done, all) => {
    const seconds = (Date.now() - began) / 1_000;
    const rate = Math.round(done / Math.max(seconds, 0.001));
    console.log(`${done} of ${all} jobs, ${rate} per second`);
  };
  console.log(await generateJobs({ url, jobs, schema, onProgress }));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) await main();

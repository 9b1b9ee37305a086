// Many jobs at once, by SQL: history over ten days, dead letters, and what waits. They are what the store
// would have written, but for the payloads, which are small.

const batch = 250_000;
const queues = 12;
const tenants = 20;
const types = 30;
const days = 10;

/** UUIDs in the order of their time, as the clients make them. */
const id = `(lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '7' || substr(md5(n::text), 1, 3)
  || '8' || substr(md5(n::text), 4, 15))::uuid`;

const numbered = `with numbered as (
  select n, now() - (n % 864000) * interval '${days} days' / 864000 - interval '2 minutes' as at,
    ($3::int[])[1 + n % ${queues}] as queue_id,
    'load.type' || n % ${types} as type, 'tenant' || n % ${tenants} as tenant,
    'INV-' || n as reference, gen_random_uuid()::text as correlation_id
  from generate_series($1::int, $2::int) n
)`;

const shared = "queue_id, claim_no, weight, attempt, max_attempts, crash_count, type, tenant";
const rest = "payload, correlation_id, idempotency_key, reference";
const values = `5, 1, 5, 0, type, tenant, json_build_object('n', n), correlation_id, 'key-' || n, reference`;

const history = `${numbered}
  insert into millrace.history (id, state, created_at, started_at, finished_at, retention_days, ${shared}, ${rest})
  select ${id}, case when n % 50 = 0 then 'cancelled' else 'completed' end, at, at + interval '10 ms',
    at + (20 + n % 500) * interval '1 ms', 30, queue_id, 1, ${values} from numbered`;

const dead = `${numbered}
  insert into millrace.dead_job (id, created_at, started_at, finished_at, ${shared}, ${rest},
    error_class, error_fingerprint, error_message)
  select ${id}, at, at, at + interval '50 ms', queue_id, 1, ${values},
    'non_retryable', md5((n % 40)::text), 'Error number ' || n % 40 from numbered`;

const ready = `${numbered}
  insert into millrace.job (id, seq, created_at, ready_at, ${shared}, ${rest})
  select ${id}, n, at, at, queue_id, 0, ${values} from numbered`;

const delayed = `${numbered}
  insert into millrace.scheduled_job (id, due_at, created_at, ${shared}, ${rest})
  select ${id}, now() + n % 100000 * interval '1 s' + interval '1 hour', at, queue_id, 0, ${values} from numbered`;

const parts = [
  { name: "history", share: 0.95, sql: history },
  { name: "dead letters", share: 0.01, sql: dead },
  { name: "ready", share: 0.03, sql: ready },
  { name: "delayed", share: 0.01, sql: delayed },
];

const counts = `insert into millrace.queue_count (queue_id, process, minute, enqueued, completed, dead)
  select q.id, '00000000-0000-0000-0000-000000000000', m.minute, $1::int / 60, $2::int / 60, $3::int / 60
  from millrace.queue q cross join generate_series(date_trunc('minute', now()) - interval '59 minutes',
    date_trunc('minute', now()), interval '1 minute') m (minute)`;

/** How many of each there are; the last number of each part is one that can be looked for. */
export async function fillJobs(client, jobs, say) {
  const { rows } = await client.query(
    `insert into millrace.queue (name) select 'load-' || n from generate_series(1, ${queues}) n returning id`,
  );
  const ids = rows.map((row) => row.id);
  await client.query(
    `select millrace.attach_history(30::smallint, current_date - ${days + 1}, ${days + 2})`,
  );
  let from = 1;
  const made = {};
  for (const { name, share, sql } of parts) {
    const count = Math.round(jobs * share);
    const end = from + count - 1;
    for (; from <= end; from += batch) {
      await client.query(sql, [from, Math.min(end, from + batch - 1), ids]);
      say(`${name}: ${Math.min(end, from + batch - 1)} of ${jobs}`);
    }
    from = end + 1;
    made[name] = { count, last: end };
  }
  const perQueue = (name) => Math.round(made[name].count / queues);
  const ended = perQueue("history");
  await client.query(counts, [Math.round(jobs / queues), ended, perQueue("dead letters")]);
  await client.query("analyze");
  return made;
}

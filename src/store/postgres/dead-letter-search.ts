// Looking through dead letters: by status, error and time, and what they add up to.

import type {
  DeadLetter,
  DeadLetterPage,
  DeadLetterPlace,
  DeadLetterQuery,
  DeadLetterStatistics,
  DeadLetterStatus,
  DeadLetterStore,
} from "../dead-letter.ts";
import type { Reader } from "./database.ts";
import { statement } from "./statement.ts";

const statusOf = `case when d.state = 'discarded' then 'discarded' when d.reprocessed_as is not null then 'reprocessed'
    else 'pending_review' end`;

// Where to begin is part of the text: an index is of no use behind "or".
const ofTenant = "d.tenant = $1::text";
const ofFingerprint = "d.error_fingerprint = $6::text";
const ways = {
  all: "$1::text is null and $6::text is null",
  tenant: `${ofTenant} and $6::text is null`,
  fingerprint: `${ofFingerprint} and ($1::text is null or ${ofTenant})`,
};

// Not a join: the planner would begin with the queues and sort all their letters for one page.
const queueName =
  "(select q.name from millrace.queue q where q.id = d.queue_id and q.deleted_at is null)";

const from = (way: keyof typeof ways) => `millrace.dead_job d
  where ${ways[way]} and ${queueName} is not null and ($2::text is null or ${statusOf} = $2::text)
    and ($3::int is null or d.queue_id = $3::int) and ($4::text is null or d.type = $4::text)
    and ($5::text is null or d.meta->>'category' = $5::text) and ($7::text is null or d.error_class = $7::text)
    and ($8::timestamptz is null or d.finished_at >= $8::timestamptz)
    and ($9::timestamptz is null or d.finished_at < $9::timestamptz)`;

const listBy = (way: keyof typeof ways) =>
  statement(
    `list_dead_letters_${way}`,
    `select d.id, d.tenant, d.queue_id, ${queueName} as queue, d.meta->>'category' as category, d.type, ${statusOf} as status,
    d.idempotency_key, d.correlation_id, d.error_class, d.error_fingerprint, d.error_message, d.attempt,
    d.reprocessed_as, d.closed_reason, d.created_at, d.finished_at, d.finished_at::text as place
  from ${from(way)} and (d.finished_at, d.id) < ($10::timestamptz, $11::uuid)
  order by d.finished_at desc, d.id desc limit $12::int`,
  );

const countBy = (way: keyof typeof ways) =>
  statement(`count_dead_letters_${way}`, `select count(*)::float8 as letters from ${from(way)}`);

// By index alone: the usual question, asked with every first page.
const countEverything = statement(
  "count_all_dead_letters",
  `select ((select count(*) from millrace.dead_job)
    - (select count(*) from millrace.queue q join millrace.dead_job d on d.queue_id = q.id
      where q.deleted_at is not null))::float8 as letters`,
);

const lists = { all: listBy("all"), tenant: listBy("tenant"), fingerprint: listBy("fingerprint") };
const counts = {
  all: countBy("all"),
  tenant: countBy("tenant"),
  fingerprint: countBy("fingerprint"),
};

const wayOf = ({ tenant, fingerprint }: DeadLetterQuery): keyof typeof ways => {
  if (fingerprint !== undefined) return "fingerprint";
  return tenant === undefined ? "all" : "tenant";
};

const isPending = "d.state = 'dead' and d.reprocessed_as is null";

const grouped = (key: string, of: string) =>
  `(select coalesce(json_object_agg(k, n), '{}') from (
      select ${key} as k, sum(letters) as n from ${of} group by 1 having sum(letters) > 0) g)`;

/** From the tally; of the letters themselves only the newest of each shown error, and the last day's. */
const statisticsOf = (name: string, mine: string) =>
  statement(
    name,
    `with mine as materialized (
    select d.status, d.error_class, d.category, q.name as queue, d.fingerprint, sum(d.letters) as letters
    from millrace.dead_letter_tally d join millrace.queue q on q.id = d.queue_id and q.deleted_at is null
    where ${mine} group by 1, 2, 3, 4, 5
  ),
  pending as materialized (select * from mine where status = 'pending_review'),
  frequent as (
    select fingerprint, sum(letters) as count from pending group by 1 having sum(letters) > 0
    order by 2 desc, 1 limit 20
  )
  select ${grouped("status", "mine")} as by_status, ${grouped("error_class", "pending")} as by_error_class,
    ${grouped("category", "pending")} as by_category, ${grouped("queue", "pending")} as by_queue,
    (select json_agg(g) from (
      select f.fingerprint, f.count, newest.error_message as message, newest.finished_at as last_at
      from frequent f cross join lateral (
        select d.error_message, d.finished_at from millrace.dead_job d
        where d.error_fingerprint = f.fingerprint and ${mine} and ${isPending}
        order by d.finished_at desc limit 1
      ) newest order by f.count desc, f.fingerprint) g) as fingerprints,
    (select extract(epoch from now() - min(oldest.finished_at))::float8 from millrace.queue q cross join lateral (
      select d.finished_at from millrace.dead_job d
      where d.queue_id = q.id and d.state = 'dead' and ${mine} and ${isPending} order by d.finished_at limit 1
    ) oldest where q.deleted_at is null) as oldest,
    (select count(*)::float8 from millrace.dead_job d where d.finished_at > now() - interval '1 day' and ${mine}
      and ${queueName} is not null) as last_day`,
  );

const statistics = statisticsOf("dead_letter_statistics", "$1::text is null");
const statisticsOfTenant = statisticsOf("dead_letter_statistics_of_tenant", ofTenant);

interface LetterRow {
  [column: string]: unknown;
  id: string;
  tenant: string;
  queue_id: number;
  queue: string;
  category: string | null;
  type: string;
  status: DeadLetterStatus;
  idempotency_key: string | null;
  correlation_id: string | null;
  error_class: string;
  error_fingerprint: string;
  error_message: string;
  attempt: number;
  reprocessed_as: string | null;
  closed_reason: string | null;
  created_at: Date;
  finished_at: Date;
  /** With microseconds, which a Date has not. */
  place: string;
}

const parametersOf = (query: DeadLetterQuery) => [
  query.tenant ?? null,
  query.status ?? null,
  query.queueId ?? null,
  query.type ?? null,
  query.category ?? null,
  query.fingerprint ?? null,
  query.errorClass ?? null,
  query.from ?? null,
  query.to ?? null,
];

export const createDeadLetterStore = (database: Reader): DeadLetterStore => ({
  list: (query, before, limit) => listLetters(database, query, before, limit),
  async count(query) {
    const parameters = parametersOf(query);
    const isEverything = parameters.every((parameter) => parameter === null);
    const [row] = await (isEverything
      ? database.query<{ letters: number }>(countEverything)
      : database.query<{ letters: number }>(counts[wayOf(query)], parameters));
    return row?.letters ?? 0;
  },
  statistics: (tenant) => readStatistics(database, tenant),
});

async function listLetters(
  database: Reader,
  query: DeadLetterQuery,
  before: DeadLetterPlace | null,
  limit: number,
): Promise<DeadLetterPage> {
  const rows = await database.query<LetterRow>(lists[wayOf(query)], [
    ...parametersOf(query),
    before?.diedAt ?? "infinity",
    before?.id ?? "ffffffff-ffff-ffff-ffff-ffffffffffff",
    limit + 1,
  ]);
  const shown = rows.slice(0, limit);
  const last = rows.length > limit ? shown.at(-1) : undefined;
  return {
    letters: shown.map(toLetter),
    next: last === undefined ? null : { diedAt: last.place, id: last.id },
  };
}

const toLetter = (row: LetterRow): DeadLetter => ({
  id: row.id,
  tenant: row.tenant,
  queueId: row.queue_id,
  queue: row.queue,
  category: row.category,
  type: row.type,
  status: row.status,
  idempotencyKey: row.idempotency_key ?? row.id,
  correlationId: row.correlation_id ?? row.id,
  errorClass: row.error_class,
  errorFingerprint: row.error_fingerprint,
  errorMessage: row.error_message,
  attempt: row.attempt,
  reprocessedAs: row.reprocessed_as,
  closedReason: row.closed_reason,
  createdAt: row.created_at,
  diedAt: row.finished_at,
});

interface StatisticsRow {
  [column: string]: unknown;
  by_status: Record<string, number>;
  by_error_class: Record<string, number>;
  by_category: Record<string, number>;
  by_queue: Record<string, number>;
  fingerprints: { fingerprint: string; count: number; message: string; last_at: string }[] | null;
  oldest: number | null;
  last_day: number;
}

async function readStatistics(
  database: Reader,
  tenant: string | undefined,
): Promise<DeadLetterStatistics> {
  const [row] = await database.query<StatisticsRow>(
    tenant === undefined ? statistics : statisticsOfTenant,
    [tenant ?? null],
  );
  return {
    byStatus: row?.by_status ?? {},
    byErrorClass: row?.by_error_class ?? {},
    byCategory: row?.by_category ?? {},
    byQueue: row?.by_queue ?? {},
    fingerprints: (row?.fingerprints ?? []).map(({ last_at, ...rest }) => ({
      ...rest,
      lastAt: new Date(last_at),
    })),
    oldestPendingSeconds: row?.oldest ?? null,
    lastDay: row?.last_day ?? 0,
  };
}

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

const grouped = (key: string, of: string) =>
  `(select coalesce(json_object_agg(k, n), '{}') from (select ${key} as k, count(*) as n from ${of} group by 1) g)`;

/** All of it from one pass over the letters. */
const statisticsOf = (name: string, mine: string) =>
  statement(
    name,
    `with mine as materialized (
    select ${statusOf} as status, d.error_class, coalesce(d.meta->>'category', '') as category, q.name as queue,
      d.error_fingerprint as fingerprint, d.error_message, d.finished_at
    from millrace.dead_job d join millrace.queue q on q.id = d.queue_id and q.deleted_at is null where ${mine}
  ),
  pending as (select * from mine where status = 'pending_review')
  select ${grouped("status", "mine")} as by_status, ${grouped("error_class", "pending")} as by_error_class,
    ${grouped("category", "pending")} as by_category, ${grouped("queue", "pending")} as by_queue,
    (select json_agg(g) from (
      select fingerprint, count(*) as count, max(error_message) as message, max(finished_at) as last_at
      from pending group by 1 order by 2 desc, 1 limit 20) g) as fingerprints,
    (select extract(epoch from now() - min(finished_at))::float8 from pending) as oldest,
    (select count(*)::float8 from mine where finished_at > now() - interval '1 day') as last_day`,
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

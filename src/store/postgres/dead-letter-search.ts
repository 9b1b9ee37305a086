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
import type { Database } from "./database.ts";
import { statement } from "./statement.ts";

const statusOf = `case when d.state = 'discarded' then 'discarded' when d.reprocessed_as is not null then 'reprocessed'
    else 'pending_review' end`;

const from = `millrace.dead_job d join millrace.queue q on q.id = d.queue_id and q.deleted_at is null
  where ($1::text is null or d.tenant = $1::text) and ($2::text is null or ${statusOf} = $2::text)
    and ($3::int is null or d.queue_id = $3::int) and ($4::text is null or d.type = $4::text)
    and ($5::text is null or d.meta->>'category' = $5::text)
    and ($6::text is null or d.error_fingerprint = $6::text) and ($7::text is null or d.error_class = $7::text)
    and ($8::timestamptz is null or d.finished_at >= $8::timestamptz)
    and ($9::timestamptz is null or d.finished_at < $9::timestamptz)`;

const list = statement(
  "list_dead_letters",
  `select d.id, d.tenant, d.queue_id, q.name as queue, d.meta->>'category' as category, d.type, ${statusOf} as status,
    d.idempotency_key, d.correlation_id, d.error_class, d.error_fingerprint, d.error_message, d.attempt,
    d.reprocessed_as, d.closed_reason, d.created_at, d.finished_at, d.finished_at::text as place
  from ${from} and ($10::timestamptz is null or (d.finished_at, d.id) < ($10::timestamptz, $11::uuid))
  order by d.finished_at desc, d.id desc limit $12::int`,
);

const count = statement("count_dead_letters", `select count(*)::float8 as letters from ${from}`);

const mine = `from millrace.dead_job d join millrace.queue q on q.id = d.queue_id and q.deleted_at is null
  where ($1::text is null or d.tenant = $1::text)`;
const pending = `${mine} and d.state = 'dead' and d.reprocessed_as is null`;
const grouped = (key: string, of: string) =>
  `(select coalesce(json_object_agg(k, n), '{}') from (select ${key} as k, count(*) as n ${of} group by 1) g)`;

const statistics = statement(
  "dead_letter_statistics",
  `select ${grouped(statusOf, mine)} as by_status, ${grouped("d.error_class", pending)} as by_error_class,
    ${grouped("coalesce(d.meta->>'category', '')", pending)} as by_category, ${grouped("q.name", pending)} as by_queue,
    (select json_agg(g) from (
      select d.error_fingerprint as fingerprint, count(*) as count, max(d.error_message) as message,
        max(d.finished_at) as last_at
      ${pending} group by 1 order by 2 desc, 1 limit 20) g) as fingerprints,
    (select extract(epoch from now() - min(d.finished_at))::float8 ${pending}) as oldest,
    (select count(*)::float8 ${mine} and d.finished_at > now() - interval '1 day') as last_day`,
);

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

export const createDeadLetterStore = (database: Database): DeadLetterStore => ({
  list: (query, before, limit) => listLetters(database, query, before, limit),
  async count(query) {
    const [row] = await database.query<{ letters: number }>(count, parametersOf(query));
    return row?.letters ?? 0;
  },
  statistics: (tenant) => readStatistics(database, tenant),
});

async function listLetters(
  database: Database,
  query: DeadLetterQuery,
  before: DeadLetterPlace | null,
  limit: number,
): Promise<DeadLetterPage> {
  const rows = await database.query<LetterRow>(list, [
    ...parametersOf(query),
    before?.diedAt ?? null,
    before?.id ?? null,
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
  database: Database,
  tenant: string | undefined,
): Promise<DeadLetterStatistics> {
  const [row] = await database.query<StatisticsRow>(statistics, [tenant ?? null]);
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

// What a broker needs to know of PostgreSQL: which jobs are ready and where, and which database this is.

import type { Place } from "../../domain/job.ts";
import type { ClaimHint, ReadyPlace } from "../store.ts";
import type { Database } from "./database.ts";
import { arrayText, statement } from "./statement.ts";

const listReady = statement(
  "list_ready",
  `select weight, seq::float8 as seq, ctid::text as tid from millrace.job
  where queue_id = $1::int and weight between $3::smallint and $4::smallint
    and tenant_slot = 0 and lane = 0 and claim_id is null
  order by weight, tenant_slot, lane, seq limit $2::int`,
);

// From remembered places: does not walk over what was taken before.
const listReadyAfter = statement(
  "list_ready_after",
  `select found.* from unnest($3::smallint[], $4::bigint[]) h (weight, seq)
  cross join lateral (
    select j.weight, j.seq::float8 as seq, j.ctid::text as tid from millrace.job j
    where j.queue_id = $1::int and j.weight = h.weight and j.tenant_slot = 0 and j.lane = 0
      and j.seq > h.seq and j.claim_id is null
    order by j.seq limit $2::int
  ) found limit $2::int`,
);

// Ready, and not for who knows these types only: of another type, or in a queue that serves nobody now.
const foreign = statement(
  "foreign_places",
  `select found.* from rows from (unnest($1::tid[]), unnest($2::bigint[])) s (tid, seq)
  cross join lateral (
    select j.queue_id, j.weight, j.seq::float8 as seq, j.ctid::text as tid from millrace.job j
    where j.ctid = s.tid and j.seq = s.seq and j.claim_id is null
      and (j.type <> all ($3::text[])
        or (select q.paused_at is not null or not q.is_active from millrace.queue q where q.id = j.queue_id))
    limit 1
  ) found`,
);

// The timeline changes when a standby is promoted: what it never received may have been hinted.
const identify = statement(
  "identify",
  `select (select system_identifier from pg_control_system())::text as system, d.oid::int as database,
    case when pg_is_in_recovery() then 'standby'
      else left(pg_walfile_name(pg_current_wal_lsn()), 8) end as timeline
  from pg_database d where d.datname = current_database()`,
);

export async function listReadyPlaces(
  database: Database,
  queueId: number,
  limit: number,
  hints: readonly ClaimHint[],
  { from, to }: { readonly from: number; readonly to: number },
): Promise<ReadyPlace[]> {
  const own = hints.filter(
    ({ queueId: of, weight }) => of === queueId && weight >= from && weight <= to,
  );
  own.sort((a, b) => a.weight - b.weight);
  type Row = { weight: number; seq: number; tid: string };
  const rows =
    own.length === 0
      ? await database.query<Row>(listReady, [queueId, limit, from, to])
      : await database.query<Row>(listReadyAfter, [
          queueId,
          limit,
          arrayText(own.map(({ weight }) => weight)),
          arrayText(own.map(({ afterSeq }) => afterSeq)),
        ]);
  return rows.map(({ weight, seq, tid }) => ({ queueId, weight, seq, tid }));
}

export async function findForeign(
  database: Database,
  places: readonly Place[],
  types: readonly string[] | null,
): Promise<ReadyPlace[]> {
  type Row = { queue_id: number; weight: number; seq: number; tid: string };
  const rows = await database.query<Row>(foreign, [
    arrayText(places.map(({ tid }) => tid)),
    arrayText(places.map(({ seq }) => seq)),
    types === null ? null : arrayText(types),
  ]);
  return rows.map(({ queue_id, weight, seq, tid }) => ({ queueId: queue_id, weight, seq, tid }));
}

export async function identityOf(
  database: Database,
): Promise<{ namespace: string; epoch: string }> {
  const [row] = await database.query<{ system: string; database: number; timeline: string }>(
    identify,
    [],
  );
  const system = `${row?.system}.${row?.database}`;
  return { namespace: `${system}.${database.schema}`, epoch: `${system}.${row?.timeline}` };
}

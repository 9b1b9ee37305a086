// One round trip of a worker: completions of the last batch, and the claim of the next one.
//
// A completion deletes the hot row under its token and appends to history. A claim is a HOT update of
// rows found by the claim index; `ctid = any(array(…))` keeps the plan the same whatever the statistics.
// Both see one snapshot, which is fine: neither reads what the other writes.

import type { ClaimedJob, JobMeta } from "../../domain/job.ts";
import type { Timeline } from "../../domain/timeline.ts";
import type { Token } from "../../domain/token.ts";
import type { Claimed, ClaimRequest, Turn, Turned } from "../store.ts";
import type { Connection } from "./connection.ts";
import { arrayText, statement } from "./statement.ts";

// LATERAL with LIMIT fixes the join order, whatever the planner believes about the size of `job`.
const settle = `held as materialized (select $2::uuid[] as claims),
  settled as (
    delete from millrace.job j
    where j.ctid = any (array(
      select found.tid
      from held cross join rows from (unnest($1::uuid[]), unnest($3::int[]), unnest($8::int[]))
        s (id, claim_no, place)
      cross join lateral (
        select j.ctid as tid from millrace.job j
        where j.id = s.id and j.claim_id = held.claims[s.place] and j.claim_no = s.claim_no limit 1
      ) found
    )) and j.claim_id = any ((select claims from held)::uuid[])
    returning j.*
  ),
  given as (
    select id, result from rows from (unnest($1::uuid[]), json_array_elements($4::json)) g (id, result)
    where $4::json is not null and json_typeof(result) <> 'null'
  ),
  archived as (
    insert into millrace.history (id, state, created_at, started_at, finished_at, claim_id, queue_id, claim_no,
      retention_days, weight, attempt, max_attempts, crash_count, type, tenant, worker, payload, result,
      correlation_id, idempotency_key, reference, meta, timeline)
    select s.id, 'completed', s.created_at, s.started_at, now(), s.claim_id, s.queue_id, s.claim_no,
      q.retention_days, s.weight, s.attempt, s.max_attempts, s.crash_count, s.type, s.tenant, $5::text, s.payload,
      g.result, s.correlation_id, s.idempotency_key, s.reference, s.meta, s.timeline
    from settled s join millrace.queue q on q.id = s.queue_id left join given g on g.id = s.id
  ),
  counted as (
    insert into millrace.queue_count (queue_id, process, minute, completed)
    select queue_id, $6::uuid, date_trunc('minute', now()), count(*) from settled group by queue_id
    on conflict (queue_id, process, minute) do update set completed = queue_count.completed + excluded.completed
  ),
  finished as (
    delete from millrace.claim where id = any($7::uuid[])
  )`;

const openQueues = `open_queue as materialized (
    select q.id, w.place from unnest($14::int[]) with ordinality w (id, place)
    join millrace.queue q on q.id = w.id and q.paused_at is null and q.is_active
  )`;

// A loose scan: one index probe per weight that a queue holds.
const headsByScan = `head (queue_id, place, weight) as (
    select o.id, o.place,
      (select j.weight from millrace.job j where j.queue_id = o.id order by j.weight limit 1)
    from open_queue o
    union all
    select h.queue_id, h.place,
      (select j.weight from millrace.job j where j.queue_id = h.queue_id and j.weight > h.weight
        order by j.weight limit 1)
    from head h where h.weight is not null
  ),
  start as materialized (
    select queue_id, weight, 0::bigint as seq from head where weight is not null order by weight, place
  )`;

const headsByHint = `start as materialized (
    select h.queue_id, h.weight, h.seq
    from unnest($16::int[], $17::smallint[], $18::bigint[]) h (queue_id, weight, seq)
    join open_queue o on o.id = h.queue_id order by h.weight, o.place
  )`;

const runnable = `j.claim_id is null and (j.expires_at is null or j.expires_at > now())
          and ($13::text[] is null or j.type = any($13::text[]))`;

const take = `suspect as materialized (
    select array(
      select found.tid from start s cross join lateral (
        select j.ctid as tid from millrace.job j
        where $15::boolean and j.queue_id = s.queue_id and j.weight = s.weight and j.tenant_slot = 0
          and j.lane = -1 and ${runnable}
        order by j.seq limit 1 for update skip locked
      ) found limit least(1, $12::int)
    ) as tids
  ),
  claimed as (
    update millrace.job j
    set claim_id = $10::uuid, claim_no = j.claim_no + 1, attempt = j.attempt + 1, started_at = now()
    where j.ctid = any ((select tids from suspect) || array(
      select found.tid from start s cross join lateral (
        select j.ctid as tid from millrace.job j
        where j.queue_id = s.queue_id and j.weight = s.weight and j.tenant_slot = 0 and j.lane = 0
          and j.seq > s.seq and ${runnable}
        order by j.seq limit $12::int for update skip locked
      ) found limit $12::int - (select cardinality(tids) from suspect)
    ))
    returning j.*
  ),
  recorded as (
    insert into millrace.claim (id, lease_id, deadline, job_ids)
    select $10::uuid, $11::uuid, now() + min(max_runtime_ms) * interval '1 ms', array_agg(id)
    from claimed having count(*) > 0
  )`;

// What most jobs do not have shares one column, and times are plain numbers: reading rows is a good part
// of a worker's time.
const claimedColumns = `id, claim_no, type, queue_id, tenant, attempt, max_attempts, crash_count, payload,
    date_part('epoch', created_at), date_part('epoch', started_at), weight, seq::float8,
    case when num_nonnulls(max_runtime_ms, correlation_id, idempotency_key, reference, meta, timeline) > 0
      then json_build_array(max_runtime_ms, correlation_id, idempotency_key, reference, meta, timeline) end`;

const completed = `null::uuid, count(*)::int,
    case when count(*) < $9::int then array_to_string(array_agg(id), ',') end`;

const answer = `select ${completed}, null, null, null, null, null, null, null, null, null, null, null
  from settled
  union all
  (select ${claimedColumns} from claimed order by weight, seq)`;

const settleOnly = statement("settle_completed", `with ${settle} select ${completed} from settled`);

const turnByScan = statement(
  "turn_by_scan",
  `with recursive ${settle}, ${openQueues}, ${headsByScan}, ${take} ${answer}`,
);

const turnByHint = statement(
  "turn_by_hint",
  `with ${settle}, ${openQueues}, ${headsByHint}, ${take} ${answer}`,
);

const replay = statement(
  "replay_claim",
  `select ${claimedColumns} from millrace.job
  where id = any (array(select unnest(job_ids) from millrace.claim where id = $1::uuid))
    and claim_id = $1::uuid
  order by weight, seq`,
);

function settleParameters(turn: Turn): (string | null)[] {
  const { completions } = turn;
  const results = completions.some((c) => c.result !== undefined);
  const claims = new Map<string, number>();
  for (const { token } of completions) {
    if (!claims.has(token.claimId)) claims.set(token.claimId, claims.size + 1);
  }
  return [
    arrayText(completions.map((c) => c.id)),
    arrayText([...claims.keys()]),
    arrayText(completions.map((c) => c.token.claimNo)),
    results ? `[${completions.map((c) => c.result ?? "null").join(",")}]` : null,
    turn.worker,
    turn.process,
    arrayText(turn.finishedClaims),
    arrayText(completions.map((c) => claims.get(c.token.claimId))),
    String(completions.length),
  ];
}

function claimParameters(claim: ClaimRequest): (string | null)[] {
  return [
    claim.claimId,
    claim.leaseId,
    String(claim.limit),
    claim.types === null ? null : arrayText(claim.types),
    arrayText(claim.queueIds),
    String(claim.suspect),
  ];
}

function hintParameters(claim: ClaimRequest): string[] {
  if (claim.hints === null) return [];
  return [
    arrayText(claim.hints.map((hint) => hint.queueId)),
    arrayText(claim.hints.map((hint) => hint.weight)),
    arrayText(claim.hints.map((hint) => hint.afterSeq)),
  ];
}

export async function takeTurn(connection: Connection, turn: Turn): Promise<Turned> {
  const { claim } = turn;
  if (claim === null) {
    const rows = await connection.rows(settleOnly, settleParameters(turn));
    return { completed: await completeMissing(connection, turn, completedOf(rows)), jobs: [] };
  }
  const source = claim.hints === null ? turnByScan : turnByHint;
  const rows = await connection.rows(source, [
    ...settleParameters(turn),
    ...claimParameters(claim),
    ...hintParameters(claim),
  ]);
  const jobs: ClaimedRow[] = [];
  for (let i = 1; i < rows.length; i++) jobs.push(new ClaimedRow(claim.claimId, rows[i] ?? []));
  return { completed: await completeMissing(connection, turn, completedOf(rows)), jobs };
}

function completedOf(rows: unknown[][]): ReadonlySet<string> | null {
  const [, count, ids] = rows[0] ?? [];
  if (count === 0) return none;
  return typeof ids === "string" ? new Set(ids.split(",")) : null;
}

const none: ReadonlySet<string> = new Set();

/**
 * A cancel requested at the same moment replaces the row that the statement has found, and the
 * statement passes over it: whoever is missing is looked for again before it counts as superseded.
 */
async function completeMissing(
  connection: Connection,
  turn: Turn,
  completed: ReadonlySet<string> | null,
): Promise<ReadonlySet<string> | null> {
  if (completed === null || turn.completions.length === 0) return null;
  const missing = turn.completions.filter(({ id }) => !completed.has(id));
  const again = { ...turn, completions: missing, finishedClaims: [] };
  const found = completedOf(await connection.rows(settleOnly, settleParameters(again)));
  return found === null ? null : new Set([...completed, ...found]);
}

/** The same claim id returns the same jobs, as far as they are still held under it. */
export async function replayClaim(connection: Connection, claimId: string): Promise<Claimed> {
  const rows = await connection.rows(replay, [claimId]);
  return { jobs: rows.map((row) => new ClaimedRow(claimId, row)) };
}

type Rare = [
  number | null,
  string | null,
  string | null,
  string | null,
  JobMeta | null,
  Timeline | null,
];

const nothingRare: Rare = [null, null, null, null, null, null];
const noMeta: JobMeta = Object.freeze({});
const noTimeline: Timeline = Object.freeze([]);

class ClaimedRow implements ClaimedJob {
  readonly id: string;
  readonly token: Token;
  readonly type: string;
  readonly queueId: number;
  readonly tenant: string;
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly crashCount: number;
  readonly payload: unknown;
  readonly weight: number;
  readonly seq: number;
  readonly maxRuntimeMs: number | null;
  readonly correlationId: string;
  readonly idempotencyKey: string;
  readonly reference: string | null;
  readonly meta: JobMeta;
  readonly timeline: Timeline;
  readonly #createdAt: number;
  readonly #startedAt: number;

  constructor(claimId: string, row: unknown[]) {
    this.id = row[0] as string;
    this.token = { claimId, claimNo: row[1] as number };
    this.type = row[2] as string;
    this.queueId = row[3] as number;
    this.tenant = row[4] as string;
    this.attempt = row[5] as number;
    this.maxAttempts = row[6] as number;
    this.crashCount = row[7] as number;
    this.payload = row[8];
    this.#createdAt = row[9] as number;
    this.#startedAt = row[10] as number;
    this.weight = row[11] as number;
    this.seq = row[12] as number;
    const rare = (row[13] as Rare | null) ?? nothingRare;
    this.maxRuntimeMs = rare[0];
    this.correlationId = rare[1] ?? this.id;
    this.idempotencyKey = rare[2] ?? this.id;
    this.reference = rare[3];
    this.meta = rare[4] ?? noMeta;
    this.timeline = rare[5] ?? noTimeline;
  }

  get createdAt(): Date {
    return new Date(this.#createdAt * 1000);
  }

  get startedAt(): Date {
    return new Date(this.#startedAt * 1000);
  }
}

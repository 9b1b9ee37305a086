// The fast way in: ready jobs without names, many calls in one statement.
//
// The producer's row numbers the flush. When the answer to a flush is lost, `resolveFlush` says
// exactly whether it was committed, and at the same time makes a late arrival of it do nothing.

import type { Handover, ImmediateClaim, NewJob, ReadyPlace } from "../store.ts";
import type { Connection } from "./connection.ts";
import type { ShapedFlush } from "./flush-columns.ts";
import { handedFlushOfSeveral } from "./flush-handed.ts";
import { claimedFlush, handedFlush } from "./flush-one.ts";
import {
  clearOf,
  countAlike,
  countEnqueued,
  type Flush,
  fence,
  fenceAnd,
  flushedAtOf,
  flushedMs,
  parameters,
} from "./flush-parts.ts";
import { type ShapeOptions, shapedFlush } from "./flush-shape.ts";
import { alikeParameters, newJobNames, newJobRows } from "./job-columns.ts";
import { arrayText, statement } from "./statement.ts";

const alikeRows = `rows from (unnest($3::text::uuid[]), string_to_table($9::text, E'\\n'))
      with ordinality r (id, payload, place)`;

// The first `$18` jobs are claimed as they are inserted, unless an older job is ready: then order wins.
const flushAndClaim = statement(
  "flush_and_claim",
  `with ${fence},
  clear as materialized (
    select not exists (
      select from unnest($21::text::int[], $22::text::smallint[], $23::text::bigint[]) h (queue_id, weight, seq)
      cross join lateral (
        select from millrace.job j
        where j.queue_id = h.queue_id and j.weight = h.weight and j.tenant_slot = 0 and j.lane = 0
          and j.seq > h.seq and j.claim_id is null
        order by j.seq limit 1
      ) older
    ) and not exists (
      select from millrace.queue q where q.id = any($24::text::int[]) and (q.paused_at is not null or not q.is_active)
    ) as yes
  ),
  inserted as (
    insert into millrace.job (id, seq, claim_id, claim_no, attempt, started_at, created_at, ready_at,
      queue_id, weight, max_attempts, type, tenant, payload, expires_at, max_runtime_ms,
      correlation_id, idempotency_key, reference, meta)
    select r.id, base + r.place,
      case when taken then (select $19::text::uuid) end, case when taken then 1 else 0 end,
      case when taken then 1 else 0 end, case when taken then now() end, now(), now(),
      r.queue_id, r.weight, r.max_attempts, r.type, r.tenant, r.payload::json,
      now() + r.expires_in_ms * interval '1 ms', r.max_runtime_ms, r.correlation_id,
      r.idempotency_key, r.reference, r.meta
    from fence, clear, ${newJobRows}) with ordinality r (${newJobNames}, place),
      lateral (select clear.yes and r.place <= (select $18::text::int) as taken) t
    returning id, claim_id, max_runtime_ms, seq
  ),
  claimed as (
    insert into millrace.claim (id, lease_id, deadline, job_ids)
    select $19::text::uuid, $20::text::uuid, now() + min(max_runtime_ms) * interval '1 ms', array_agg(id)
    from inserted where claim_id is not null having count(*) > 0
    returning 1
  ),
  counted as (${countEnqueued("unnest($4::text::int[])")})
  select exists (select from claimed), (select max(seq)::float8 from inserted where claim_id is not null), ${flushedMs},
    case when $17::text is not null and ($18::text::int < cardinality($3::text::uuid[]) or not (select yes from clear))
      then pg_notify($16::text, $17::text) end
  from fence`,
);

// The same for jobs that differ in id and payload only, for a worker with one hint.
const flushAlikeAndClaim = statement(
  "flush_alike_and_claim",
  `with ${fenceAnd(`, ${clearOf("$4::text::int", "$5::text::smallint", "$16::text::bigint")} as yes`)},
  inserted as (
    insert into millrace.job (id, seq, claim_id, claim_no, attempt, started_at, created_at, ready_at,
      queue_id, weight, max_attempts, type, tenant, payload)
    select r.id, base + r.place, case when taken then $14::text::uuid end, case when taken then 1 else 0 end,
      case when taken then 1 else 0 end, case when taken then now() end, now(), now(), $4::text::int,
      $5::text::smallint, $6::text::smallint, $7::text, $8::text, r.payload::json
    from fence, ${alikeRows},
      lateral (select fence.yes and r.place <= $13::text::int as taken) t
    returning id, claim_id, seq
  ),
  claimed as (
    insert into millrace.claim (id, lease_id, job_ids)
    select $14::text::uuid, $15::text::uuid, array_agg(id)
    from inserted where claim_id is not null having count(*) > 0
    returning 1
  ),
  counted as (${countAlike("$4::text::int", "$12::text::bigint")})
  select exists (select from claimed), (select max(seq)::float8 from inserted where claim_id is not null), ${flushedMs},
    case when $11::text is not null and ($13::text::int < $12::text::int or not yes)
      then pg_notify($10::text, $11::text) end
  from fence`,
);

const openProducer = statement(
  "open_producer",
  `insert into millrace.producer (id, flush_no) values ($1, 0)`,
);

// Asked again, it answers the same: it never moves to the number of the flush itself, which only the flush does.
const resolveFlush = statement(
  "resolve_flush",
  `update millrace.producer set seen_at = now(),
    flush_no = case when flush_no < $2::bigint then $2::bigint + 1 else flush_no end
  where id = $1::uuid
  returning flush_no`,
);

const notify = statement("notify", "select pg_notify($1, $2)");

function parametersIfAlike(flush: Flush): (string | null)[] | null {
  const alike = alikeParameters(flush.jobs);
  if (alike === null) return null;
  const { flushNo, producer, channel, notice, jobs } = flush;
  return [String(flushNo), producer, ...alike, channel, notice, String(jobs.length)];
}

export interface FlushedJobs {
  /** False: the fence refused, nothing was inserted. */
  readonly flushed: boolean;
  readonly places: readonly ReadyPlace[] | null;
}

export async function flushJobs(
  connection: Connection,
  flush: Flush,
  options: ShapeOptions,
): Promise<FlushedJobs> {
  const { source, values } = shapedFlush(flush, options);
  const [row] = await connection.rows(source, values);
  if (row === undefined) return { flushed: false, places: null };
  return { flushed: true, places: placesOf(flush.jobs, row[1], row[2]) };
}

/** In the order of seq, which is the order of the jobs. */
function placesOf(jobs: readonly NewJob[], tids: unknown, base: unknown): ReadyPlace[] | null {
  if (typeof tids !== "string" || typeof base !== "number") return null;
  const all = tids.split(";");
  return jobs.map(({ queueId, weight }, i) => ({
    queueId,
    weight,
    seq: base + i + 1,
    tid: all[i] ?? "",
  }));
}

/** Of several jobs that were not handed over. */
export function refusedPlaces(
  jobs: readonly NewJob[],
  [row]: unknown[][],
): readonly ReadyPlace[] | null {
  const [last, tids] = [row?.[1], row?.[7]];
  return typeof last === "number" ? placesOf(jobs, tids, last - jobs.length) : null;
}

export interface FlushedAndClaimed {
  /** Null: the fence refused, nothing was inserted. */
  readonly flushedAt: Date | null;
  readonly claimedAt: Date | null;
  readonly lastSeq: number | null;
}

/** One job, for a worker that looks in one place for older ones: the shortest statements are for these. */
export const isLone = (jobs: readonly NewJob[], claim: ImmediateClaim | undefined): boolean =>
  jobs.length === 1 &&
  (claim === undefined || (claim.hints.length === 1 && claim.claimId === jobs[0]?.id));

/** For a worker of this process; with `tally` a lone job is counted in the producer's row. */
export function claiming(flush: Flush, claim: ImmediateClaim, tally: boolean): ShapedFlush {
  if (claim.begun === true || isLone(flush.jobs, claim)) return claimedFlush(flush, claim, tally);
  const alike = claim.hints.length === 1 ? parametersIfAlike(flush) : null;
  const own = [String(claim.count), claim.claimId, claim.leaseId];
  if (alike !== null) {
    const values = [...alike, ...own, String(claim.hints[0]?.afterSeq ?? 0)];
    return { source: flushAlikeAndClaim, values };
  }
  return {
    source: flushAndClaim,
    values: [
      ...parameters(flush),
      ...own,
      arrayText(claim.hints.map((hint) => hint.queueId)),
      arrayText(claim.hints.map((hint) => hint.weight)),
      arrayText(claim.hints.map((hint) => hint.afterSeq)),
      arrayText(claim.queueIds),
    ],
  };
}

/** For one elsewhere. */
export const handing = (
  flush: Flush,
  handover: Handover,
  { tally, payloadsApart }: { readonly tally: boolean; readonly payloadsApart: boolean },
): ShapedFlush =>
  flush.jobs.length === 1
    ? handedFlush(flush, handover, tally)
    : handedFlushOfSeveral(flush, handover, payloadsApart);

/** What came of it. */
export function flushedAndClaimed([row]: unknown[][]): FlushedAndClaimed {
  if (row === undefined) return { flushedAt: null, claimedAt: null, lastSeq: null };
  const [claimed, lastSeq, ms] = row as [boolean, number, number];
  const flushedAt = flushedAtOf(ms);
  return {
    flushedAt,
    claimedAt: claimed ? flushedAt : null,
    lastSeq: claimed ? lastSeq : null,
  };
}

export async function registerProducer(connection: Connection, producer: string): Promise<void> {
  await connection.query(openProducer, [producer]);
}

export interface Resolved {
  readonly committed: boolean;
  /** The one to count on from. */
  readonly flushNo: number;
}

/** After a lost answer: was flush `flushNo` committed? If not, from now on it cannot be. */
export async function resolved(
  connection: Connection,
  producer: string,
  flushNo: number,
): Promise<Resolved> {
  const [row] = await connection.rows(resolveFlush, [producer, flushNo]);
  const reached = row === undefined ? flushNo + 1 : Number(row[0]);
  return { committed: reached === flushNo, flushNo: reached };
}

export async function sendNotice(
  connection: Connection,
  channel: string,
  notice: string,
): Promise<void> {
  await connection.query(notify, [channel, notice]);
}

// A flush of several jobs that are alike, for a worker elsewhere: stored as claimed, and told in pieces that a
// notice can hold. See docs/design/handover.md.

import { areLong } from "../long-payloads.ts";
import type { Handover, NewJob, Seen } from "../store.ts";
import { idsAndPayloads } from "./flush-columns.ts";
import { countAlike, type Flush, fenceAnd, flushedMs, isOpen, olderOf } from "./flush-parts.ts";
import { handedText, mostPerPiece } from "./handed.ts";
import { offerStands } from "./offers.ts";
import { statement } from "./statement.ts";

/** Is in no JSON text. */
const separator = "\x1e";

// Its claims hold what it has not settled yet, so their sum says how much it can be given.
const heldJobs = `(
      select coalesce(sum(cardinality(c.job_ids)), 0) from millrace.claim c where c.lease_id = $13::uuid
    )`;

const behindMs = `(${olderOf("date_part('epoch', now() - j.ready_at) * 1000", "$8::int", "$9::smallint", "$14::bigint")})`;

// The places come last: only the server knows them.
const pieces = `select 'jobs' as kind, jobs as text from string_to_table($21::text, E'\\x1e') jobs
      union all
      select case when last then 'last' else 'places' end, substr(tids, from_char, ${mostPerPiece})
      from told, generate_series(1, length(tids), ${mostPerPiece}) from_char,
        lateral (select from_char + ${mostPerPiece} > length(tids) as last) l`;

const lines = "string_to_table($7::text, E'\\n')";

// Taken one by one out of their lists, without being written down in between.
const payloadsApart = `
  apart as (
    insert into millrace.long_payload (job_id, tenant, payload)
    select unnest($6::uuid[]), $12::text, unnest($7::text[]) from fence
  ),`;

const alongside = {
  payload: "r.payload::json",
  rows: `rows from (unnest($6::uuid[]), ${lines}) with ordinality r (id, payload, place)`,
};
const elsewhere = { payload: "null", rows: "unnest($6::uuid[]) with ordinality r (id, place)" };

function handing(name: string, { payload, rows }: typeof alongside) {
  const apart = payload === "null" ? payloadsApart : "";
  return statement(
    name,
    `with ${fenceAnd(`, ${behindMs} as behind_ms, ${heldJobs} as held`)},${apart}
  said as materialized (
    select base, behind_ms, held, behind_ms is null and held + $5::bigint <= $18::bigint and ${isOpen("$8::int")}
      and ${offerStands("$13::uuid", "$15::uuid", "$16::int")} as yes
    from fence
  ),
  inserted as (
    insert into millrace.job (id, seq, created_at, ready_at, payload, claim_id, claim_no, attempt, started_at,
      queue_id, weight, max_attempts, type, tenant)
    select r.id, base + r.place, now(), now(), ${payload},
      case when yes then $17::uuid end, yes::int, yes::int,
      case when yes then now() end, $8::int, $9::smallint, $10::smallint, $11::text, $12::text
    from said, ${rows}
    returning ctid as tid
  ),
  told as (select string_agg(tid::text, ';') as tids from inserted),
  claimed as (
    insert into millrace.claim (id, lease_id, job_ids)
    select $17::uuid, $13::uuid, $6::uuid[] from said where yes
  ),
  counted as (${countAlike("$8::int", "$5::bigint")})
  select yes, (base + $5::bigint)::float8, ${flushedMs},
    case when not yes and $4::text is not null then pg_notify($3::text, $4::text) end,
    case when yes then (
      select count(pg_notify($19::text,
        $20::text || ' ' || (base + 1) || ' ' || date_part('epoch', now()) || ' ' || kind || E'\\n' || text))
      from (${pieces}) p
    ) end,
    behind_ms, (held + case when yes then $5::bigint else 0 end)::int,
    case when not yes then (select tids from told) end
  from said`,
  );
}

const flushAndHand = handing("flush_and_hand", alongside);
const flushAndHandLong = handing("flush_and_hand_long", elsewhere);

const separated = (texts: readonly string[]): string[] =>
  texts.map((text, i) => (i === 0 ? text : separator + text));

const commonOf = ({ queueId, weight, maxAttempts, type, tenant }: NewJob) => [
  ...[String(queueId), String(weight), String(maxAttempts), type, tenant],
];

/** What its answer tells of the worker. */
export function seenBy([row]: unknown[][]): Seen | undefined {
  const held = row?.[6];
  return typeof held === "number" ? { behindMs: row?.[5] as number | null, held } : undefined;
}

/** For jobs that differ in id and payload only; `apart`: long payloads have a place of their own. */
export function handedFlushOfSeveral(flush: Flush, handover: Handover, apart: boolean) {
  const { flushNo, producer, channel, notice, jobs } = flush;
  const { leaseId, claimId, afterSeq, offerId, leaseLeftMs, texts, most } = handover;
  const long = apart && areLong(jobs);
  return {
    source: long ? flushAndHandLong : flushAndHand,
    values: [
      ...[String(flushNo), producer, channel, notice, String(jobs.length)],
      ...[...idsAndPayloads(jobs, long), ...commonOf(jobs[0] as NewJob)],
      ...[leaseId, String(afterSeq), offerId, String(leaseLeftMs), claimId, String(most)],
      ...[handover.channel, handedText({ leaseId, claimId, jobId: null }), separated(texts)],
    ],
  };
}

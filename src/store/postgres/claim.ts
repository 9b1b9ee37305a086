// Taking a batch of ready jobs: a HOT update of rows found by the claim index.
//
// `ctid = any(array(…))` keeps the plan the same whatever the statistics. Claims by hint are on the way
// of every pickup and look at nothing else; suspects (lane −1) are found by scans.

import type { Claimed, ClaimRequest, HandedClaim } from "../store.ts";
import {
  claimedColumns,
  toJobs,
  type Usual,
  unusual,
  usualCount,
  usualParameters,
} from "./claimed-row.ts";
import type { Connection } from "./connection.ts";
import { arrayText, statement } from "./statement.ts";

const openQueues = `open_queue as materialized (
    select q.id, w.place from unnest($5::int[]) with ordinality w (id, place)
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
    from unnest($6::int[], $7::smallint[], $8::bigint[]) h (queue_id, weight, seq)
    join open_queue o on o.id = h.queue_id order by h.weight, o.place
  )`;

const claimable = `j.claim_id is null and (j.expires_at is null or j.expires_at > now())
          and ($4::text[] is null or j.type = any($4::text[]))`;

const ready = (lane: 0 | -1, limit: string) => `select found.tid from start s cross join lateral (
        select j.ctid as tid from millrace.job j
        where j.queue_id = s.queue_id and j.weight = s.weight and j.tenant_slot = 0 and j.lane = ${lane}
          and j.seq > s.seq and ${claimable}
        order by j.seq limit ${limit} for update skip locked
      ) found limit ${limit}`;

// One queue, one weight: the usual case, and what every pickup waits for. Fewer parts start sooner.
const readyInOne = (columns: string) => `select ${columns} from millrace.job j
        where j.queue_id = $5::int and j.weight = $6::smallint and j.tenant_slot = 0 and j.lane = 0
          and j.seq > $7::bigint and ${claimable}
          and (select q.paused_at is null and q.is_active from millrace.queue q where q.id = $5::int)
        order by j.seq limit $3::int for update skip locked`;

// Named rows: somebody was told where they are. Whatever stands there by now, the seq tells it apart.
const readyAtPlaces = `select found.tid
      from rows from (unnest($6::tid[]), unnest($7::bigint[])) s (tid, seq)
      cross join lateral (
        select j.ctid as tid from millrace.job j
        where j.ctid = s.tid and j.seq = s.seq and ${claimable}
          and j.queue_id = any ((select array_agg(id) from open_queue)::int[])
          and j.tenant_slot = 0 and j.lane = 0
        limit 1 for update skip locked
      ) found limit $3::int`;

const suspect = `suspect as materialized (
    select array(${ready(-1, "case when $6::boolean then least(1, $3::int) else 0 end")}) as tids
  )`;

const update = (tids: string) => `update millrace.job j
    set claim_id = $1::uuid, claim_no = j.claim_no + 1, attempt = j.attempt + 1, started_at = now()
    where j.ctid = any (${tids})`;

const record = (source: string) => `recorded as (
    insert into millrace.claim (id, lease_id, deadline, job_ids)
    select $1::uuid, $2::uuid, now() + min(max_runtime_ms) * interval '1 ms', array_agg(id)
    from ${source} having count(*) > 0
  )`;

const take = (tids: string) => `claimed as (
    ${update(tids)}
    returning j.*, j.ctid as tid
  ),
  ${record("claimed")}`;

const told = (parameters: number) => ({
  parameters: parameters + usualCount,
  columns: claimedColumns(parameters + 1),
});

const suspectFirst = `(select tids from suspect)
      || array(${ready(0, "$3::int - cardinality((select tids from suspect))")})`;

/**
 * Common table expressions that end in `claimed`, and what is told of it; they use the first parameters of
 * their statement. The last of these say what a usual job is like.
 */
export const claims = {
  scan: {
    ...told(6),
    text: `${openQueues}, ${headsByScan}, ${suspect}, ${take(suspectFirst)}`,
  },
  hint: {
    ...told(8),
    text: `${openQueues}, ${headsByHint}, ${take(`array(${ready(0, "$3::int")})`)}`,
  },
  one: { ...told(7), text: take(`array(${readyInOne("j.ctid")})`) },
  place: { ...told(7), text: `${openQueues}, ${take(`array(${readyAtPlaces})`)}` },
};

export type ClaimWay = keyof typeof claims;

export function wayOf({ hints, places }: ClaimRequest): ClaimWay {
  if (places !== undefined) return "place";
  if (hints === null) return "scan";
  return hints.length === 1 ? "one" : "hint";
}

export const selectClaimed = (way: ClaimWay) => `select ${claims[way].columns}, tid from claimed`;

/** A claim with nothing to settle. */
export const claimOnly = {
  scan: statement("claim_by_scan", `with recursive ${claims.scan.text} ${selectClaimed("scan")}`),
  hint: statement("claim_by_hint", `with ${claims.hint.text} ${selectClaimed("hint")}`),
  place: statement("claim_by_place", `with ${claims.place.text} ${selectClaimed("place")}`),
  one: statement(
    "claim_by_one",
    `with picked as materialized (${readyInOne("j.ctid as tid, j.id, j.max_runtime_ms")}),
  ${record("picked")}
  ${update("array(select tid from picked)")}
  returning ${claims.one.columns}, j.ctid`,
  ),
};

const replay = statement(
  "replay_claim",
  `select ${claimedColumns(null)}, ctid from millrace.job
  where id = any (array(select unnest(job_ids) from millrace.claim where id = $1::uuid))
    and claim_id = $1::uuid`,
);

// Whoever hears of a claim may ask for it; only the lease that it was made for is told.
const handed = statement(
  "claim_handed",
  `select ${claimedColumns(null)}, ctid from millrace.job
  where id = any (array(select unnest(job_ids) from millrace.claim where id = $1::uuid and lease_id = $3::uuid))
    and claim_id = $1::uuid and ($2::uuid is null or id = $2::uuid)`,
);

export const claimParameters = (claim: ClaimRequest, usual: Usual): (string | null)[] => [
  ...wayParameters(claim),
  ...usualParameters(usual),
];

function wayParameters(claim: ClaimRequest): (string | null)[] {
  const { hints, places } = claim;
  const parameters = [
    claim.claimId,
    claim.leaseId,
    String(claim.limit),
    claim.types === null ? null : arrayText(claim.types),
  ];
  if (places !== undefined) {
    return [
      ...parameters,
      arrayText(claim.queueIds),
      `{${places.map(({ tid }) => `"${tid}"`).join(",")}}`,
      `{${places.map(({ seq }) => seq).join(",")}}`,
    ];
  }
  if (hints === null) {
    return [...parameters, arrayText(claim.queueIds), String(claim.suspect)];
  }
  const [first, ...others] = hints;
  if (first !== undefined && others.length === 0) {
    return [...parameters, String(first.queueId), String(first.weight), String(first.afterSeq)];
  }
  return [
    ...parameters,
    arrayText(claim.queueIds),
    arrayText(hints.map((hint) => hint.queueId)),
    arrayText(hints.map((hint) => hint.weight)),
    arrayText(hints.map((hint) => hint.afterSeq)),
  ];
}

/** The same claim id returns the same jobs, as far as they are still held under it. */
export async function replayClaim(connection: Connection, claimId: string): Promise<Claimed> {
  return { jobs: toJobs(claimId, await connection.rows(replay, [claimId]), unusual) };
}

export async function handedClaim(connection: Connection, claim: HandedClaim): Promise<Claimed> {
  const { claimId, leaseId, jobId } = claim;
  const rows = await connection.rows(handed, [claimId, jobId, leaseId]);
  return { jobs: toJobs(claimId, rows, unusual) };
}

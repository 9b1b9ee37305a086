// What the reclaimer reads: leases and claims that are over, through claim rows and never through a
// search of the hot table.

import type { Timeline } from "../../domain/timeline.ts";
import type { LapsedJob, LapsedLease, LeaseCensus } from "../store.ts";
import { type Runner, statement } from "./statement.ts";

const census = statement(
  "lease_census",
  `select count(*) filter (where expires_at >= now())::int as live,
    count(*) filter (where expires_at < now())::int as lapsed,
    (extract(epoch from now() - pg_postmaster_start_time()) * 1000)::float8 as server_up_ms,
    (select (extract(epoch from now() - case when expires_at > now() then elected_at else expires_at end) * 1000)::float8
      from millrace.leader where term > 0) as leader_changed_ms
  from millrace.lease`,
);

/** Keeps lease rows that were just deleted, for whoever asks what became of those workers. */
export const rememberDead = (deleted: string): string =>
  `insert into millrace.dead_worker (lease_id, worker, started_at, renewed_at, expires_at, info)
    select id, worker, started_at, renewed_at, expires_at, info from ${deleted}`;

const forgetEmpty = statement(
  "forget_empty_leases",
  `with empty as (
    delete from millrace.lease l where l.expires_at < now()
      and not exists (select from millrace.claim c where c.lease_id = l.id) returning l.*
  )
  ${rememberDead("empty")}`,
);

// A lease is read whole, however many claims it has: who is charged for its end depends on all that it held. A run
// that is too long is left to its worker for one more lease: if that is dead, its lease is over by then.
const leaseLength = "coalesce(l.expires_at - l.renewed_at, interval '0')";

// Nobody tells it of a robot's items, nor do older versions of theirs.
const ran = `case when l.spared is null then 'alone' when l.shared_claim = c.id then 'shared'
    when l.alone_claim = c.id then 'alone' else 'not_yet' end`;

const find = statement(
  "find_lapsed",
  `with first as materialized (
    select c.id, case when l.expires_at >= now() then null else c.lease_id end as dead_lease
    from millrace.claim c left join millrace.lease l on l.id = c.lease_id
    where (c.lease_id is not null and (l.id is null or l.expires_at < now()))
      or c.expires_at < now() or c.deadline + ${leaseLength} < now()
    order by c.created_at limit 500
  ),
  over as materialized (
    select c.id, c.lease_id, c.job_ids, coalesce(l.worker, c.robot, '?') as worker,
      (l.expires_at >= now()) is true as alive, ${ran} as ran, l.spared is true as spared,
      ${leaseLength} as lease_length
    from millrace.claim c left join millrace.lease l on l.id = c.lease_id
    where c.id in (select id from first) or c.lease_id in (select dead_lease from first)
  )
  select o.lease_id, o.worker, o.alive, o.ran, o.spared, j.id, j.claim_id, j.claim_no, j.type, j.attempt, j.max_attempts,
    j.crash_count, j.timeline, j.started_at, j.correlation_id
  from over o cross join unnest(o.job_ids) x (id)
  cross join lateral (select * from millrace.job j where j.id = x.id and j.claim_id = o.id limit 1) j
  where not o.alive or j.started_at + j.max_runtime_ms * interval '1 ms' + o.lease_length < now()`,
);

const forgetClaims = statement(
  "forget_empty_claims",
  `delete from millrace.claim c
  where ((c.lease_id is not null and not exists (select from millrace.lease l where l.id = c.lease_id and l.expires_at >= now()))
      or c.expires_at < now() or c.deadline < now())
    and not exists (select from unnest(c.job_ids) x (id)
      where (select true from millrace.job j where j.id = x.id and j.claim_id = c.id limit 1))`,
);

type CensusRow = {
  live: number;
  lapsed: number;
  server_up_ms: number;
  leader_changed_ms: number | null;
};

export async function leaseCensus(runner: Runner): Promise<LeaseCensus> {
  const [row] = await runner.query<CensusRow>(census);
  return {
    live: row?.live ?? 0,
    lapsed: row?.lapsed ?? 0,
    serverUpMs: row?.server_up_ms ?? 0,
    leaderChangedMs: row?.leader_changed_ms ?? null,
  };
}

type LapsedRow = {
  lease_id: string | null;
  worker: string;
  alive: boolean;
  ran: LapsedJob["ran"];
  spared: boolean;
  id: string;
  claim_id: string;
  claim_no: number;
  type: string;
  attempt: number;
  max_attempts: number;
  crash_count: number;
  timeline: Timeline | null;
  started_at: Date;
  correlation_id: string | null;
};

export async function findLapsed(runner: Runner): Promise<LapsedLease[]> {
  const rows = await runner.query<LapsedRow>(find);
  const leases = new Map<string, { leaseId: string | null; jobs: LapsedJob[] }>();
  for (const row of rows) {
    // Each claim of a robot is a lease of its own: one robot's crash charges nobody else's items.
    const key = row.lease_id ?? row.claim_id;
    const lease = leases.get(key) ?? { leaseId: row.lease_id, jobs: [] };
    leases.set(key, lease);
    lease.jobs.push(toLapsedJob(row));
  }
  return [...leases.values()];
}

export async function forgetEnded(runner: Runner): Promise<void> {
  await runner.query(forgetClaims);
  await runner.query(forgetEmpty);
}

function toLapsedJob(row: LapsedRow): LapsedJob {
  return {
    id: row.id,
    token: { claimId: row.claim_id, claimNo: row.claim_no },
    type: row.type,
    attempt: row.attempt,
    maxAttempts: row.max_attempts,
    crashCount: row.crash_count,
    timeline: row.timeline ?? [],
    startedAt: row.started_at,
    correlationId: row.correlation_id ?? row.id,
    worker: row.worker,
    overtime: row.alive,
    ran: row.ran,
    spared: row.spared,
  };
}

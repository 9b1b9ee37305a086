// Claiming in controlled queues. One call of a function that locks, looks and takes: a worker that is
// stopped meanwhile holds nobody up. See docs/design/flow-control.md.

import type { LaneClaimed, LaneClaimRequest } from "../flow.ts";
import { toJobsInOrder, unusual } from "./claimed-row.ts";
import type { Connection } from "./connection.ts";
import { payloadTextOf } from "./long-payload.ts";
import { arrayText, statement } from "./statement.ts";

const claim = statement(
  "claim_lanes",
  `select id, claim_no, type, queue_id, tenant, attempt, max_attempts, crash_count, ${payloadTextOf()}, created_at,
    started_at, weight, seq, rare, tid
  from millrace.claim_lanes($1::uuid, $2::uuid, $3::int, $4::int, $5::text[], $6::boolean)`,
);

const longPayloads = statement(
  "long_payloads",
  `select job_id, payload from millrace.long_payload where job_id = any($1::uuid[])`,
);

interface About {
  readonly reason: string | null;
  readonly freeMs: number | null;
  readonly waiting: boolean;
  /** Null: every key was looked at, or there was no room for more. */
  readonly passed: boolean | null;
}

const payloadColumn = 8;

/**
 * The function may wait for its turn, and then sees jobs that were stored meanwhile; the statement around it does not
 * see their payloads. Should this fail, the claim is replayed like any whose answer was lost.
 */
async function readMissing(connection: Connection, rows: unknown[][]): Promise<void> {
  const missing = rows.filter((row) => row[payloadColumn] === null);
  if (missing.length === 0) return;
  const ids = arrayText(missing.map((row) => row[0] as string));
  const found = new Map(
    (await connection.rows(longPayloads, [ids])).map(([id, payload]) => [id, payload]),
  );
  for (const row of missing) row[payloadColumn] = found.get(row[0]) ?? null;
}

export async function claimLanes(
  connection: Connection,
  request: LaneClaimRequest,
): Promise<LaneClaimed> {
  const { claimId, leaseId, queueId, limit, types, suspect } = request;
  const [first, ...rows] = await connection.rows(claim, [
    claimId,
    leaseId,
    String(queueId),
    String(limit),
    types === null ? null : arrayText(types),
    String(suspect),
  ]);
  await readMissing(connection, rows);
  const about: About = JSON.parse(first?.[payloadColumn] as string);
  return {
    // Turns are kept by those who run what was claimed, too: the rows come in the order of the claim.
    jobs: toJobsInOrder(claimId, rows, unusual),
    waiting: about.waiting,
    reason: about.reason,
    freeInMs: about.freeMs === null ? null : Math.max(0, about.freeMs),
    visited: about.passed === null ? "all" : about.passed ? "end" : "some",
  };
}

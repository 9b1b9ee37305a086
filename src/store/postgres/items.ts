// Reading an item wherever its job is by now, with the lease it is under.

import type { JobState } from "../../domain/job-state.ts";
import type { Timeline } from "../../domain/timeline.ts";
import type { ExceptionType, Item } from "../item.ts";
import type { Reader } from "./database.ts";
import { payloadOf } from "./long-payload.ts";
import { statement } from "./statement.ts";

const own = "id, queue_id, tenant, reference";

const read = statement(
  "read_item",
  `select i.* from (
    select j.id, j.queue_id, j.tenant, j.reference, case when j.claim_id is null then 'ready' else 'running' end as state,
      j.weight, ${payloadOf("j.")} as payload, null::json as result, j.timeline, null as error_message, null as exception_type, j.attempt,
      coalesce(c.robot, l.worker) as robot, j.started_at as locked_at,
      coalesce(c.expires_at, l.expires_at) as lock_expires_at, b.job_id, j.created_at,
      coalesce(j.started_at, j.ready_at) as updated_at
    from millrace.job j left join millrace.claim c on c.id = j.claim_id
    left join millrace.lease l on l.id = c.lease_id left join millrace.trigger_batch b on b.job_id = j.claim_id
    where j.id = $1::uuid
    union all
    select ${own}, 'scheduled', weight, ${payloadOf()}, null, timeline, null, null, attempt, null, null, null, null, created_at,
      created_at from millrace.scheduled_job where id = $1::uuid
    union all
    select ${own}, state, weight, ${payloadOf()}, result, null, error_message, exception_type, attempt, worker, started_at, null,
      case when worker = 'trigger' then claim_id end, created_at, coalesce(closed_at, finished_at)
    from millrace.dead_job where id = $1::uuid
    union all
    select ${own}, state, weight, ${payloadOf()}, result, null, null, null, attempt, worker, started_at, null,
      case when worker = 'trigger' then claim_id end, created_at, finished_at
    from millrace.history where id = $1::uuid
  ) i join millrace.queue q on q.id = i.queue_id and q.deleted_at is null`,
);

export interface ItemRow {
  [column: string]: unknown;
  id: string;
  queue_id: number;
  tenant: string;
  reference: string | null;
  state: JobState;
  weight: number;
  payload: unknown;
  result: unknown;
  timeline: Timeline | null;
  error_message: string | null;
  exception_type: ExceptionType | null;
  attempt: number;
  robot: string | null;
  locked_at: Date | null;
  lock_expires_at: Date | null;
  job_id: string | null;
  created_at: Date;
  updated_at: Date;
}

export function toItem(row: ItemRow): Item {
  // An item that waits for its next run tells of how the last one failed.
  const last = row.timeline?.at(-1);
  const endedAt = last === undefined ? 0 : Date.parse(last.endedAt);
  return {
    id: row.id,
    queueId: row.queue_id,
    tenant: row.tenant,
    reference: row.reference,
    state: row.state,
    weight: row.weight,
    payload: row.payload,
    result: row.result ?? null,
    errorMessage: row.error_message ?? last?.message ?? null,
    exceptionType: row.exception_type ?? last?.exceptionType ?? null,
    attempt: row.attempt,
    robot: row.robot,
    lockedAt: row.locked_at,
    lockExpiresAt: row.lock_expires_at,
    jobId: row.job_id,
    createdAt: row.created_at,
    updatedAt: +row.updated_at < endedAt ? new Date(endedAt) : row.updated_at,
  };
}

export async function findItem(database: Reader, id: string): Promise<Item | null> {
  const [row] = await database.query<ItemRow>(read, [id]);
  return row === undefined ? null : toItem(row);
}

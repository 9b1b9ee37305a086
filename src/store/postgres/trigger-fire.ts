// Firing a trigger: one transaction that locks its row, takes its slots or its items, and makes the jobs.
// Bodies over `run`, so that they also work inside a transaction that somebody else fences.

import { uuidv7 } from "../../runtime/uuid.ts";
import type { Fired } from "../triggers.ts";
import { type RunStatement, statement } from "./statement.ts";
import { takeItems } from "./trigger-items.ts";
import { type DueRow, enqueueMade, type FireContext, newJob } from "./trigger-jobs.ts";
import { roomFor } from "./trigger-room.ts";
import { toTrigger, triggerColumns, triggerTables } from "./trigger-rows.ts";
import { fireSlots } from "./trigger-slots.ts";

const lockDue = statement(
  "trigger_lock_due",
  `select ${triggerColumns}, now() as now, jq.max_attempts as queue_attempts, jq.is_active, jq.capacity,
    jq.tenant_capacity, o.capacity as own_capacity, o.warn_depth as own_warn_depth
  from ${triggerTables} left join millrace.tenant o on o.name = t.tenant
  where t.id = any ($1::uuid[]) and t.enabled and (t.next_fire_at <= now() or t.on_arrival)
    and (t.retry_at is null or t.retry_at <= now())
  for update of t skip locked`,
);

// $2 the job, $3 the last item.
const moveOn = statement(
  "trigger_move_on",
  `update millrace.trigger set
    last_fired_at = case when $2::uuid is null then last_fired_at else now() end,
    last_job_id = coalesce($2::uuid, last_job_id),
    last_processed_item_id = coalesce($3::uuid, last_processed_item_id),
    next_fire_at = now() + polling_interval_ms * interval '1 ms',
    failures = 0, last_error = null, retry_at = null
  where id = $1::uuid`,
);

const nothing: Fired = { jobIds: [], items: 0, missedFrom: null, again: false };

/**
 * null: somebody else has the trigger, or it is not due any more. `seenAt` is when a runner could first
 * have fired it: what it is late by since then is no fault of the slot's.
 */
export async function fireTrigger(
  run: RunStatement,
  id: string,
  seenAt: Date | undefined,
  context: FireContext,
): Promise<Fired | null> {
  const [row] = await lockRows(run, [id]);
  if (row === undefined) return null;
  if (row.type === "QUEUE") return fireItems(run, row, context);
  return (await fireSlots(run, [row], seenAt, context)).get(id) ?? null;
}

/** Several time triggers in one transaction; those of another type are passed over. */
export async function fireTriggers(
  run: RunStatement,
  ids: readonly string[],
  seenAt: Date,
  context: FireContext,
): Promise<(Fired | null)[]> {
  const rows = (await lockRows(run, ids)).filter(({ type }) => type === "TIME");
  const fired = await fireSlots(run, rows, seenAt, context);
  return ids.map((id) => fired.get(id) ?? null);
}

async function lockRows(run: RunStatement, ids: readonly string[]): Promise<DueRow[]> {
  return (await run(lockDue, [ids])) as unknown as DueRow[];
}

async function fireItems(run: RunStatement, row: DueRow, context: FireContext): Promise<Fired> {
  const trigger = toTrigger(row);
  const jobId = uuidv7();
  const items = await takeItems(run, trigger, jobId);
  const last = items.at(-1);
  if (last === undefined) {
    await run(moveOn, [row.id, null, null]);
    return nothing;
  }
  await roomFor(run, row, 1);
  await enqueueMade(run, [newJob(row, trigger, { id: jobId, items }, context)], context);
  await run(moveOn, [row.id, jobId, last]);
  const again = trigger.onArrival && items.length === trigger.batchSize;
  return { jobIds: [jobId], items: items.length, missedFrom: null, again };
}

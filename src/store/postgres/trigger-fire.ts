// Firing a trigger: one transaction that locks its row, takes its slots or its items, and makes the jobs.
// Bodies over `run`, so that they also work inside a transaction that somebody else fences.

import { dueSlots } from "../../domain/due-slots.ts";
import { MillraceError } from "../../domain/errors.ts";
import { createSchedule } from "../../domain/schedule.ts";
import { payloadOf, type Trigger } from "../../domain/trigger.ts";
import { uuidv7 } from "../../runtime/uuid.ts";
import type { NewJob } from "../store.ts";
import type { Fired } from "../triggers.ts";
import { enqueueJobs } from "./enqueue.ts";
import { noticeTexts } from "./notices.ts";
import { type RunStatement, statement } from "./statement.ts";
import { takeItems } from "./trigger-items.ts";
import { type TriggerRow, toTrigger, triggerColumns, triggerTables } from "./trigger-rows.ts";

const lockDue = statement(
  "trigger_lock_due",
  `select ${triggerColumns}, now() as now, jq.max_attempts as queue_attempts, jq.is_active, jq.capacity
  from ${triggerTables}
  where t.id = $1::uuid and t.enabled and (t.next_fire_at <= now() or t.on_arrival)
    and (t.retry_at is null or t.retry_at <= now())
  for update of t skip locked`,
);

const takeSlots = statement(
  "trigger_take_slots",
  `insert into millrace.trigger_slot (trigger_id, slot_at, job_id)
  select $1::uuid, slot_at, job_id from unnest($2::timestamptz[], $3::uuid[]) s (slot_at, job_id) order by slot_at
  on conflict (trigger_id, slot_at) do nothing returning job_id`,
);

const forgetSlots = statement(
  "trigger_forget_slots",
  `delete from millrace.trigger_slot where trigger_id = $1::uuid and slot_at < now() - interval '30 days'`,
);

const depthOf = statement(
  "trigger_queue_depth",
  `select coalesce(sum(enqueued - completed - dead - removed), 0)::float8 as depth
  from millrace.queue_count where queue_id = $1::int`,
);

// $2 the last job, $3 the next time, or null for an interval from now; $4 until when slots are done.
const moveOn = statement(
  "trigger_move_on",
  `update millrace.trigger set
    last_fired_at = case when $2::uuid is null then last_fired_at else now() end,
    last_job_id = coalesce($2::uuid, last_job_id),
    last_processed_item_id = coalesce($5::uuid, last_processed_item_id),
    next_fire_at = case when type = 'TIME' then $3::timestamptz else now() + polling_interval_ms * interval '1 ms' end,
    handled_until = greatest(handled_until, $4::timestamptz),
    failures = 0, last_error = null, retry_at = null
  where id = $1::uuid`,
);

interface DueRow extends TriggerRow {
  now: Date;
  queue_attempts: number | null;
  is_active: boolean;
  capacity: number | null;
}

export interface FireContext {
  readonly channel: string;
  /** Attempts of jobs for which neither trigger nor queue says a number. */
  readonly maxAttempts: number;
}

/** A flush has 1,024 places in the order. */
const mostPerStatement = 1_000;
const nothing: Fired = { jobIds: [], items: 0, missedFrom: null, again: false };

/** null: somebody else has the trigger, or it is not due any more. */
export async function fireTrigger(
  run: RunStatement,
  id: string,
  context: FireContext,
): Promise<Fired | null> {
  const [found] = await run(lockDue, [id]);
  if (found === undefined) return null;
  const row = found as unknown as DueRow;
  return row.type === "TIME" ? fireSlots(run, row, context) : fireItems(run, row, context);
}

async function fireSlots(run: RunStatement, row: DueRow, context: FireContext): Promise<Fired> {
  const { next_fire_at, now } = row;
  if (next_fire_at === null) return nothing;
  // Slots are whole seconds, so a second earlier the next slot is this one.
  const owed = next_fire_at.getTime() - 1_000;
  const after = new Date(Math.max(owed, row.handled_until?.getTime() ?? owed));
  const schedule = createSchedule(row.cron ?? "", row.time_zone ?? "");
  const trigger = toTrigger(row);
  const { slots, missedFrom, next } = dueSlots(schedule, { after, now }, trigger);
  const made = slots.map((slot) => ({ slot, id: uuidv7() }));
  const ids = made.map(({ id }) => id);
  const taken = new Set(
    (await run(takeSlots, [row.id, slots, ids])).map((slot) => slot.job_id as string),
  );
  const jobs = made
    .filter(({ id }) => taken.has(id))
    .map(({ slot, id }) => newJob(row, trigger, { id, slot }, context));
  await enqueue(run, row, jobs, context);
  await run(moveOn, [row.id, jobs.at(-1)?.id ?? null, next, now, null]);
  await run(forgetSlots, [row.id]);
  return { jobIds: jobs.map((job) => job.id), items: 0, missedFrom, again: false };
}

async function fireItems(run: RunStatement, row: DueRow, context: FireContext): Promise<Fired> {
  const trigger = toTrigger(row);
  const jobId = uuidv7();
  const items = await takeItems(run, trigger, jobId);
  const last = items.at(-1);
  if (last === undefined) {
    await run(moveOn, [row.id, null, null, null, null]);
    return nothing;
  }
  await enqueue(run, row, [newJob(row, trigger, { id: jobId, items }, context)], context);
  await run(moveOn, [row.id, jobId, null, null, last]);
  const again = trigger.onArrival && items.length === trigger.batchSize;
  return { jobIds: [jobId], items: items.length, missedFrom: null, again };
}

function newJob(
  row: DueRow,
  trigger: Trigger,
  { id, slot, items }: { id: string; slot?: Date; items?: readonly string[] },
  context: FireContext,
): NewJob {
  const governed = trigger.category !== null;
  const key = `trigger:${trigger.id}:${slot?.toISOString() ?? id}`;
  const payload = payloadOf(trigger, items === undefined ? { id, key } : { id, key, items });
  return {
    id,
    type: trigger.jobType,
    queueId: trigger.jobQueueId,
    tenant: trigger.tenant,
    weight: trigger.weight,
    maxAttempts: trigger.maxAttempts ?? row.queue_attempts ?? context.maxAttempts,
    payload: JSON.stringify(payload),
    maxRuntimeMs: trigger.maxRuntimeMs ?? undefined,
    correlationId: governed ? id : undefined,
    key: governed ? key : undefined,
    meta: {
      source: "TRIGGER",
      trigger: trigger.id,
      ...(slot === undefined ? {} : { slot: slot.toISOString() }),
      ...(trigger.priority === null ? {} : { priority: trigger.priority }),
      ...(trigger.category === null ? {} : { category: trigger.category }),
    },
  };
}

async function enqueue(
  run: RunStatement,
  row: DueRow,
  jobs: readonly NewJob[],
  { channel }: FireContext,
): Promise<void> {
  if (jobs.length === 0) return;
  await refuseOverload(run, row, jobs.length);
  const notice = noticeTexts.late([row.job_queue_id]);
  const request = { flushNo: null, producer: null, channel, notice };
  for (let from = 0; from < jobs.length; from += mostPerStatement) {
    const some = jobs.slice(from, from + mostPerStatement);
    for (const answer of (await enqueueJobs(run, { ...request, jobs: some })) ?? []) {
      if (answer instanceof Error) throw answer;
    }
  }
}

async function refuseOverload(run: RunStatement, row: DueRow, wanted: number): Promise<void> {
  const { job_queue: queue, capacity } = row;
  if (!row.is_active)
    throw new MillraceError("QUEUE_INACTIVE", `Queue "${queue}" does not accept jobs.`);
  if (capacity === null) return;
  const [counted] = await run(depthOf, [row.job_queue_id]);
  const depth = Number(counted?.depth ?? 0);
  if (depth + wanted <= capacity) return;
  throw new MillraceError(
    "QUEUE_FULL",
    `Queue "${queue}" holds ${depth} of ${capacity} jobs; ${wanted} more do not fit.`,
    { details: { queue, depth, capacity, wanted } },
  );
}

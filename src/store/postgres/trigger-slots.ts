// Time triggers: their slots become jobs, with a handful of statements for any number of triggers.

import { type DueSlots, dueSlots } from "../../domain/due-slots.ts";
import { createSchedule } from "../../domain/schedule.ts";
import { uuidv7 } from "../../runtime/uuid.ts";
import type { NewJob } from "../store.ts";
import type { Fired } from "../triggers.ts";
import { type RunStatement, statement } from "./statement.ts";
import {
  type DueRow,
  enqueueMade,
  type FireContext,
  mostPerStatement,
  newJob,
} from "./trigger-jobs.ts";
import { boundsOf, type Planned, roomFor } from "./trigger-room.ts";
import { toTrigger } from "./trigger-rows.ts";

const takeSlots = statement(
  "trigger_take_slots",
  `insert into millrace.trigger_slot (trigger_id, slot_at, job_id)
  select trigger_id, slot_at, job_id
  from unnest($1::uuid[], $2::timestamptz[], $3::uuid[]) s (trigger_id, slot_at, job_id) order by 1, 2
  on conflict (trigger_id, slot_at) do nothing returning job_id`,
);

const forgetSlots = statement(
  "trigger_forget_slots",
  `delete from millrace.trigger_slot where trigger_id = any ($1::uuid[]) and slot_at < now() - interval '30 days'`,
);

// A queue that had no room for all: whoever was failing still is, but has begun anew.
const moveOn = statement(
  "trigger_slots_done",
  `update millrace.trigger t set
    last_fired_at = case when m.job_id is null then t.last_fired_at else now() end,
    last_job_id = coalesce(m.job_id, t.last_job_id),
    next_fire_at = m.next_at,
    handled_until = greatest(t.handled_until, m.done_until),
    failures = case when m.is_short then least(t.failures, 1) else 0 end,
    last_error = case when m.is_short then t.last_error end, retry_at = null
  from unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::timestamptz[], $5::boolean[])
    m (id, job_id, next_at, done_until, is_short)
  where t.id = m.id`,
);

interface Plan {
  readonly row: DueRow;
  readonly due: DueSlots;
  /** Those that fit into the queue; what is left stays owed. */
  readonly jobs: readonly (NewJob & { readonly slot: Date })[];
}

/** By trigger. What would make the transaction a long one is left for the next. */
export async function fireSlots(
  run: RunStatement,
  rows: readonly DueRow[],
  seenAt: Date | undefined,
  context: FireContext,
): Promise<ReadonlyMap<string, Fired>> {
  const plans: Plan[] = [];
  const planned = new Map<string, number>();
  let count = 0;
  for (const row of rows) {
    if (count >= mostPerStatement) break;
    const plan = await planSlots(run, row, { seenAt, planned }, context);
    for (const bound of boundsOf(row))
      planned.set(bound, (planned.get(bound) ?? 0) + plan.jobs.length);
    count += plan.jobs.length;
    plans.push(plan);
  }
  if (plans.length === 0) return new Map();
  const taken = await take(run, plans);
  const made = (plan: Plan) => plan.jobs.filter(({ id }) => taken.has(id));
  await enqueueMade(run, plans.flatMap(made), context);
  await finish(run, plans, made);
  return new Map(plans.map((plan) => [plan.row.id, toFired(plan, made(plan))]));
}

async function planSlots(
  run: RunStatement,
  row: DueRow,
  { seenAt, planned }: { readonly seenAt: Date | undefined; readonly planned: Planned },
  context: FireContext,
): Promise<Plan> {
  const { now } = row;
  // Slots are whole seconds, so a second earlier the next slot is this one.
  const owedFrom = (row.next_fire_at ?? now).getTime() - 1_000;
  const after = new Date(Math.max(owedFrom, row.handled_until?.getTime() ?? owedFrom));
  const schedule = createSchedule(row.cron ?? "", row.time_zone ?? "");
  const trigger = toTrigger(row);
  // Whoever had failed could not fire before its next try, however busy the runner was.
  const seen = Math.max((seenAt ?? now).getTime(), row.retry_at?.getTime() ?? 0);
  const due = dueSlots(schedule, { after, now, seenAt: new Date(seen) }, trigger);
  const room = await roomFor(run, row, due.slots.length, planned);
  const jobs = due.slots.slice(0, room).map((slot) => {
    return { ...newJob(row, trigger, { id: uuidv7(), slot }, context), slot };
  });
  return { row, due, jobs };
}

async function take(run: RunStatement, plans: readonly Plan[]): Promise<ReadonlySet<string>> {
  const wanted = plans.flatMap(({ row, jobs }) => jobs.map(({ id, slot }) => ({ row, id, slot })));
  const rows = await run(takeSlots, [
    wanted.map(({ row }) => row.id),
    wanted.map(({ slot }) => slot),
    wanted.map(({ id }) => id),
  ]);
  return new Set(rows.map((row) => row.job_id as string));
}

async function finish(
  run: RunStatement,
  plans: readonly Plan[],
  made: (plan: Plan) => readonly NewJob[],
): Promise<void> {
  const ids = plans.map(({ row }) => row.id);
  const left = plans.map(({ due, jobs }) => due.slots[jobs.length] ?? null);
  await run(moveOn, [
    ids,
    plans.map((plan) => made(plan).at(-1)?.id ?? null),
    plans.map(({ due }, i) => left[i] ?? due.next),
    plans.map(({ row, jobs }, i) => (left[i] === null ? row.now : (jobs.at(-1)?.slot ?? null))),
    left.map((slot) => slot !== null),
  ]);
  await run(forgetSlots, [ids]);
}

function toFired({ due }: Plan, jobs: readonly NewJob[]): Fired {
  const jobIds = jobs.map(({ id }) => id);
  return { jobIds, items: 0, missedFrom: due.missedFrom, again: false };
}

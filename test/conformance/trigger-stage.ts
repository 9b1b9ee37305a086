// Short words for the trigger topics: triggers with settings that matter, slots near now, and rows.

import type { Trigger, TriggerSettings } from "../../src/domain/trigger.ts";
import { uuidv7 } from "../../src/runtime/uuid.ts";
import type { ItemOutcome, TriggerSession } from "../../src/store/triggers.ts";
import type { Claim, Stage } from "./stage.ts";

export interface MadeTrigger extends Trigger {
  /** Of a time trigger: its one slot of this year, in the past. */
  readonly slot: Date;
}

let names = 0;

async function settingsOf(stage: Stage, more: Partial<TriggerSettings>): Promise<TriggerSettings> {
  return {
    tenant: "acme",
    name: `trigger-${++names}`,
    type: "TIME",
    enabled: true,
    cron: null,
    timeZone: null,
    missedSlots: "skip",
    maxCatchUp: 100,
    queueId: null,
    batchSize: 1,
    pollingIntervalMs: 30_000,
    onArrival: false,
    jobType: "made",
    jobQueueId: await stage.queue(),
    priority: null,
    weight: 5,
    maxAttempts: null,
    maxRuntimeMs: null,
    expiresInMs: null,
    category: null,
    payloadVersion: null,
    payload: { from: "trigger" },
    ...more,
  };
}

export async function databaseNow(stage: Stage): Promise<Date> {
  const [row] = await stage.sql<{ now: Date }>("select now() as now");
  return row?.now ?? new Date(Number.NaN);
}

/** An expression with one slot a year, so many seconds ago. */
export async function yearly(
  stage: Stage,
  secondsAgo: number,
): Promise<{ cron: string; slot: Date }> {
  const now = (await databaseNow(stage)).getTime();
  const slot = new Date(Math.floor(now / 1000) * 1000 - secondsAgo * 1000);
  const [date, month] = [slot.getUTCDate(), slot.getUTCMonth() + 1];
  const time = `${slot.getUTCSeconds()} ${slot.getUTCMinutes()} ${slot.getUTCHours()}`;
  return { cron: `${time} ${date} ${month} *`, slot };
}

/** A time trigger that owes its slot. */
export async function dueTrigger(
  stage: Stage,
  secondsAgo = 5,
  more: Partial<TriggerSettings> = {},
): Promise<MadeTrigger> {
  const { cron, slot } = await yearly(stage, secondsAgo);
  const settings = await settingsOf(stage, { cron, timeZone: "UTC", ...more });
  const trigger = await stage.store.triggers.create(uuidv7(), settings);
  await owe(stage, trigger.id, slot);
  return { ...(await read(stage, trigger.id)), slot };
}

/** As if nobody had looked since just before this slot. */
export async function owe(stage: Stage, id: string, slot: Date): Promise<void> {
  await stage.sql("update millrace.trigger set next_fire_at = $2 where id = $1", [id, slot]);
}

export async function queueTrigger(
  stage: Stage,
  more: Partial<TriggerSettings> = {},
): Promise<Trigger & { readonly queueId: number }> {
  const queueId = await stage.queue();
  const settings = await settingsOf(stage, { type: "QUEUE", queueId, ...more });
  return { ...(await stage.store.triggers.create(uuidv7(), settings)), queueId };
}

export async function read(stage: Stage, id: string): Promise<Trigger> {
  const trigger = await stage.store.triggers.find(id);
  if (trigger === null) throw new Error(`no trigger ${id}`);
  return trigger;
}

/** Ids of the jobs that a queue holds, ready or running, in order. */
export async function jobsIn(stage: Stage, queueId: number): Promise<string[]> {
  const text = "select id from millrace.job where queue_id = $1 order by seq";
  return (await stage.sql<{ id: string }>(text, [queueId])).map(({ id }) => id);
}

/** A trigger whose job holds these many items. */
export async function itemHolder(stage: Stage, session: TriggerSession, count: number) {
  const trigger = await queueTrigger(stage, { batchSize: count });
  const items = await stage.put(...stage.jobs(trigger.queueId, count, { maxAttempts: 2 }));
  const [jobId = ""] = (await session.fire(trigger.id))?.jobIds ?? [];
  return { trigger, items, jobId };
}

/** The same, and a worker runs the job. */
export async function itemRunner(stage: Stage, session: TriggerSession, count: number) {
  const held = await itemHolder(stage, session, count);
  const [job] = await stage.claim(held.trigger.jobQueueId);
  if (job === undefined) throw new Error("the job was not claimed");
  return { ...held, job };
}

export const settleItem = (stage: Stage, job: Claim, itemId: string, outcome: ItemOutcome) =>
  stage.store.triggers.settleItem({
    itemId,
    jobId: job.id,
    token: job.token,
    outcome,
    random: 0.5,
  });

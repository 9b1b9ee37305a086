// A trigger: a rule that creates jobs, by time or from the items that wait in a queue.

import type { MissedSlots } from "./due-slots.ts";
import { MillraceError } from "./errors.ts";
import { exponentialBackoff } from "./retry-policy.ts";
import { createSchedule, nextSlot } from "./schedule.ts";

export const triggerTypes = ["TIME", "QUEUE"] as const;
export type TriggerType = (typeof triggerTypes)[number];

/** What somebody decides about a trigger. */
export interface TriggerSettings {
  readonly tenant: string;
  readonly name: string;
  readonly type: TriggerType;
  readonly enabled: boolean;
  readonly cron: string | null;
  readonly timeZone: string | null;
  readonly missedSlots: MissedSlots;
  /** How many missed slots `all` makes up for at most. */
  readonly maxCatchUp: number;
  readonly queueId: number | null;
  readonly batchSize: number;
  readonly pollingIntervalMs: number;
  /** Do not wait for the interval when items arrive. */
  readonly onArrival: boolean;
  readonly jobType: string;
  readonly jobQueueId: number;
  readonly priority: string | null;
  readonly weight: number;
  readonly maxAttempts: number | null;
  readonly maxRuntimeMs: number | null;
  readonly expiresInMs: number | null;
  readonly category: string | null;
  /** Of the payload, as the definition says; null: what the payload itself says. */
  readonly payloadVersion: string | null;
  readonly payload: unknown;
}

export interface Trigger extends TriggerSettings {
  readonly id: string;
  readonly queue: string | null;
  readonly jobQueue: string;
  readonly lastFiredAt: Date | null;
  /** null: it will not fire. Of a queue trigger: when it looks at its queue next. */
  readonly nextFireAt: Date | null;
  readonly lastJobId: string | null;
  readonly lastProcessedItemId: string | null;
  /** Failures in a row. */
  readonly failures: number;
  readonly lastError: TriggerError | null;
  /** Not before this, after a failure. */
  readonly retryAt: Date | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

export interface TriggerError {
  readonly code: string;
  readonly message: string;
}

/**
 * When a trigger fires next after somebody has changed it. What is owed stays owed unless the times
 * themselves were changed, or it was disabled: then it starts from now.
 */
export function plannedFire(
  settings: TriggerSettings,
  before: TriggerSettings & { readonly nextFireAt: Date | null },
  from: Date,
): Date | null {
  const sameTimes =
    before.enabled && before.cron === settings.cron && before.timeZone === settings.timeZone;
  if (settings.enabled && settings.type === "TIME" && sameTimes) return before.nextFireAt;
  return firstFire(settings, from);
}

export function firstFire(settings: TriggerSettings, from: Date): Date | null {
  const { cron, timeZone } = settings;
  if (!settings.enabled) return null;
  if (settings.type === "QUEUE") return from;
  if (cron === null || timeZone === null) throw new MillraceError("TRIGGER_INVALID");
  const next = nextSlot(createSchedule(cron, timeZone), from);
  if (next === null)
    throw new MillraceError("SCHEDULE_INVALID", `"${cron}" names no day that ever comes.`);
  return next;
}

/** The payload of a job that a trigger makes. A governed one carries its own envelope each time. */
export function payloadOf(
  trigger: Pick<TriggerSettings, "payload" | "category" | "tenant">,
  job: { readonly id: string; readonly key: string; readonly items?: readonly string[] },
): unknown {
  const { payload, category, tenant } = trigger;
  const envelope =
    category === null
      ? {}
      : { tenant_id: tenant, correlation_id: job.id, idempotency_key: job.key };
  const items = job.items === undefined ? {} : { queue_item_ids: job.items };
  if (category === null && job.items === undefined) return payload;
  return { ...(payload as object), ...envelope, ...items };
}

const backoff = exponentialBackoff({ baseMs: { retryable: 10_000 } });

/** `failures` counts from 1. */
export const failureDelayMs = (failures: number, random: number): number =>
  backoff({ class: "retryable" }, failures, random);

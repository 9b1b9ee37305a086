// Triggers as rows, read with the names of their queues.

import type { MissedSlots } from "../../domain/due-slots.ts";
import type { Trigger, TriggerError, TriggerSettings, TriggerType } from "../../domain/trigger.ts";

export const triggerColumns = `t.*, q.name as queue, jq.name as job_queue`;
export const triggerTables = `millrace.trigger t
  join millrace.queue jq on jq.id = t.job_queue_id left join millrace.queue q on q.id = t.queue_id`;

export interface TriggerRow {
  id: string;
  tenant: string;
  name: string;
  type: TriggerType;
  enabled: boolean;
  cron: string | null;
  time_zone: string | null;
  missed_slots: MissedSlots;
  max_catch_up: number;
  queue_id: number | null;
  batch_size: number;
  polling_interval_ms: number;
  on_arrival: boolean;
  job_type: string;
  job_queue_id: number;
  job_priority: string | null;
  job_weight: number;
  job_max_attempts: number | null;
  job_max_runtime_ms: number | null;
  job_expires_in_ms: string | null;
  job_category: string | null;
  job_payload_version: string | null;
  payload: unknown;
  handled_until: Date | null;
  last_fired_at: Date | null;
  last_job_id: string | null;
  last_processed_item_id: string | null;
  next_fire_at: Date | null;
  failures: number;
  last_error: TriggerError | null;
  retry_at: Date | null;
  created_at: Date;
  updated_at: Date;
  queue: string | null;
  job_queue: string;
}

export const toTrigger = (row: TriggerRow): Trigger => ({
  id: row.id,
  tenant: row.tenant,
  name: row.name,
  type: row.type,
  enabled: row.enabled,
  cron: row.cron,
  timeZone: row.time_zone,
  missedSlots: row.missed_slots,
  maxCatchUp: row.max_catch_up,
  queueId: row.queue_id,
  queue: row.queue,
  batchSize: row.batch_size,
  pollingIntervalMs: row.polling_interval_ms,
  onArrival: row.on_arrival,
  jobType: row.job_type,
  jobQueueId: row.job_queue_id,
  jobQueue: row.job_queue,
  priority: row.job_priority,
  weight: row.job_weight,
  maxAttempts: row.job_max_attempts,
  maxRuntimeMs: row.job_max_runtime_ms,
  expiresInMs: row.job_expires_in_ms === null ? null : Number(row.job_expires_in_ms),
  category: row.job_category,
  payloadVersion: row.job_payload_version,
  payload: row.payload,
  lastFiredAt: row.last_fired_at,
  nextFireAt: row.next_fire_at,
  lastJobId: row.last_job_id,
  lastProcessedItemId: row.last_processed_item_id,
  failures: row.failures,
  lastError: row.last_error,
  retryAt: row.retry_at,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
});

/** The columns that settings fill, in the order of `settingValues`. */
export const settingColumns = [
  "tenant",
  "name",
  "type",
  "enabled",
  "cron",
  "time_zone",
  "missed_slots",
  "max_catch_up",
  "queue_id",
  "batch_size",
  "polling_interval_ms",
  "on_arrival",
  "job_type",
  "job_queue_id",
  "job_priority",
  "job_weight",
  "job_max_attempts",
  "job_max_runtime_ms",
  "job_expires_in_ms",
  "job_category",
  "job_payload_version",
  "payload",
];

export const settingValues = (settings: TriggerSettings): unknown[] => [
  settings.tenant,
  settings.name,
  settings.type,
  settings.enabled,
  settings.cron,
  settings.timeZone,
  settings.missedSlots,
  settings.maxCatchUp,
  settings.queueId,
  settings.batchSize,
  settings.pollingIntervalMs,
  settings.onArrival,
  settings.jobType,
  settings.jobQueueId,
  settings.priority,
  settings.weight,
  settings.maxAttempts,
  settings.maxRuntimeMs,
  settings.expiresInMs,
  settings.category,
  settings.payloadVersion,
  JSON.stringify(settings.payload),
];

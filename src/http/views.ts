// How things read over HTTP: snake_case, times as ISO 8601, tokens to their holders only.

import { rateToWire } from "../client/http/queue-wire.ts";
import type { Job } from "../domain/job.ts";
import { itemStatus } from "../domain/job-state.ts";
import { weightOf } from "../domain/priority.ts";
import { tokenText } from "../domain/token.ts";
import type { Trigger } from "../domain/trigger.ts";
import type { ApiKey } from "../store/api-key.ts";
import type { AuditEntry } from "../store/audit.ts";
import type { Breaker } from "../store/breaker.ts";
import type { DeadLetter } from "../store/dead-letter.ts";
import type { Item, LeasedItem } from "../store/item.ts";
import type { JobSummary } from "../store/job-search.ts";
import type { QueueRecord } from "../store/queue-admin.ts";
import type { Webhook } from "../store/webhook.ts";

const iso = (date: Date) => date.toISOString();
const isoOrNull = (date: Date | null) => date?.toISOString() ?? null;

export const summaryView = (job: JobSummary) => ({
  id: job.id,
  type: job.type,
  queue: job.queue,
  tenant_id: job.tenant,
  state: job.state,
  weight: job.weight,
  attempt: job.attempt,
  max_attempts: job.maxAttempts,
  correlation_id: job.correlationId,
  idempotency_key: job.idempotencyKey,
  reference: job.reference,
  created_at: iso(job.createdAt),
  due_at: isoOrNull(job.dueAt),
  started_at: isoOrNull(job.startedAt),
  finished_at: isoOrNull(job.finishedAt),
  error_class: job.errorClass,
  error_message: job.errorMessage,
});

export const jobView = (job: Job, showsPayload: boolean) => ({
  ...summaryView({
    ...job,
    queueId: 0,
    errorClass: job.error?.class ?? null,
    errorMessage: job.error?.message ?? null,
  }),
  category: job.meta.category ?? null,
  payload: showsPayload ? job.payload : null,
  payload_masked: !showsPayload,
  result: showsPayload ? job.result : null,
  crash_count: job.crashCount,
  cancel_requested: job.cancelRequested,
  error_fingerprint: job.error?.fingerprint ?? null,
  error_stack: job.error?.stack ?? null,
  expires_at: isoOrNull(job.expiresAt),
  reprocess_of: job.meta.reprocessOf ?? null,
  reprocessed_as: job.reprocessedAs,
  trigger_id: job.meta.trigger ?? null,
  closed_reason: job.closedReason,
  timeline: job.timeline.map((entry) => ({
    attempt: entry.attempt,
    worker: entry.worker,
    started_at: entry.startedAt,
    ended_at: entry.endedAt,
    outcome: entry.outcome,
    error_class: entry.errorClass ?? null,
    error_fingerprint: entry.fingerprint ?? null,
    message: entry.message ?? null,
    exception_type: entry.exceptionType ?? null,
    times: entry.times ?? 1,
  })),
});

type Priorities = Parameters<typeof weightOf>[1];

export const weightOfPriority = (priority: number, priorities: Priorities): number =>
  weightOf(undefined, priorities) - priority;

export const itemView = (item: Item, priorities: Priorities, showsPayload = true) => ({
  id: item.id,
  queue_id: item.queueId,
  reference: item.reference,
  status: itemStatus(item.state),
  priority: weightOf(undefined, priorities) - item.weight,
  payload: showsPayload ? item.payload : null,
  payload_masked: !showsPayload,
  result: showsPayload ? item.result : null,
  error_message: item.errorMessage,
  exception_type: item.exceptionType,
  // While it waits, all its runs are behind it.
  retries:
    item.state === "ready" || item.state === "scheduled"
      ? item.attempt
      : Math.max(0, item.attempt - 1),
  locked_by_robot_id: item.robot,
  locked_at: isoOrNull(item.lockedAt),
  lock_expires_at: isoOrNull(item.lockExpiresAt),
  job_id: item.jobId,
  created_at: iso(item.createdAt),
  updated_at: iso(item.updatedAt),
});

export const leasedItemView = (item: LeasedItem, priorities: Priorities) => ({
  ...itemView(item, priorities),
  token: tokenText(item.token),
});

export const queueView = (queue: QueueRecord) => ({
  id: queue.id,
  tenant_id: queue.tenant === "" ? null : queue.tenant,
  name: queue.name,
  paused: queue.paused,
  description: queue.description,
  max_retries: queue.maxAttempts === null ? null : queue.maxAttempts - 1,
  enforce_unique_reference: queue.enforceUniqueReference,
  is_active: queue.isActive,
  capacity: queue.capacity,
  warn_depth: queue.warnDepth,
  tenant_capacity: queue.tenantCapacity,
  retention_days: queue.retentionDays,
  dead_retention_days: queue.deadRetentionDays,
  timeline_retention_days: queue.timelineRetentionDays,
  key_ttl_seconds: queue.keyTtlSeconds,
  concurrency: queue.concurrency,
  key_concurrency: queue.keyConcurrency,
  throttle: rateToWire(queue.throttle),
  key_throttle: rateToWire(queue.keyThrottle),
  rate_limit: rateToWire(queue.rateLimit),
  tenant_rate_limit: rateToWire(queue.tenantRateLimit),
  ageing_step_ms: queue.ageingStepMs,
  fair: queue.fair,
  dead_letter_blocks_key: queue.deadLetterBlocksKey,
  external_id: queue.externalId,
  created_at: iso(queue.createdAt),
  updated_at: iso(queue.updatedAt),
});

export const letterView = (letter: DeadLetter) => ({
  dlq_id: letter.id,
  category: letter.category,
  job_type: letter.type,
  status: letter.status,
  idempotency_key: letter.idempotencyKey,
  correlation_id: letter.correlationId,
  error_class: letter.errorClass,
  error_fingerprint: letter.errorFingerprint,
  error_message: letter.errorMessage.slice(0, 500),
  attempt_count: letter.attempt,
  original_created_at: iso(letter.createdAt),
  created_at: iso(letter.diedAt),
  queue: letter.queue,
  queue_id: letter.queueId,
  tenant_id: letter.tenant,
  new_job_id: letter.reprocessedAs,
  notes: letter.closedReason,
});

export const keyView = (key: ApiKey) => ({
  id: key.id,
  tenant_id: key.tenant,
  name: key.name,
  role: key.role,
  rate_limit: key.rateLimit,
  expires_at: isoOrNull(key.expiresAt),
  revoked_at: isoOrNull(key.revokedAt),
  last_used_at: isoOrNull(key.lastUsedAt),
  created_at: iso(key.createdAt),
});

export const auditView = (entry: AuditEntry) => ({
  no: entry.no,
  at: iso(entry.at),
  tenant_id: entry.tenant,
  actor: entry.actor,
  action: entry.action,
  target: entry.target,
  reason: entry.reason,
  details: entry.details ?? null,
  hash: entry.hash,
});

export const triggerView = (trigger: Trigger, showsPayload: boolean) => ({
  id: trigger.id,
  tenant_id: trigger.tenant,
  name: trigger.name,
  type: trigger.type,
  enabled: trigger.enabled,
  cron: trigger.cron,
  time_zone: trigger.timeZone,
  missed_slots: trigger.missedSlots,
  max_catch_up: trigger.maxCatchUp,
  queue: trigger.queue,
  batch_size: trigger.batchSize,
  polling_interval_ms: trigger.pollingIntervalMs,
  on_arrival: trigger.onArrival,
  job_type: trigger.jobType,
  job_queue: trigger.jobQueue,
  priority: trigger.priority,
  max_attempts: trigger.maxAttempts,
  max_runtime_ms: trigger.maxRuntimeMs,
  payload: showsPayload ? trigger.payload : null,
  last_fired_at: isoOrNull(trigger.lastFiredAt),
  next_fire_at: isoOrNull(trigger.nextFireAt),
  last_job_id: trigger.lastJobId,
  last_processed_item_id: trigger.lastProcessedItemId,
  failures: trigger.failures,
  last_error: trigger.lastError,
  retry_at: isoOrNull(trigger.retryAt),
  created_at: iso(trigger.createdAt),
  updated_at: iso(trigger.updatedAt),
});

export const webhookView = (webhook: Webhook) => ({
  id: webhook.id,
  tenant_id: webhook.tenant,
  name: webhook.name,
  url: webhook.url,
  kinds: [...webhook.kinds],
  queues: webhook.queues === null ? null : [...webhook.queues],
  is_active: webhook.isActive,
  failures: webhook.failures,
  failing_since: isoOrNull(webhook.failingSince),
  last_error: webhook.lastError,
  last_failed_at: isoOrNull(webhook.lastFailedAt),
  last_delivered_at: isoOrNull(webhook.lastDeliveredAt),
  created_at: iso(webhook.createdAt),
});

export const breakerView = (breaker: Breaker) => ({
  name: breaker.name,
  state: breaker.state,
  failures: breaker.failures,
  openings: breaker.openings,
  retry_after_ms: breaker.retryAfterMs,
  probes_out: breaker.probes.length,
  cause: breaker.cause,
  reason: breaker.reason,
  changed_at: iso(breaker.changedAt),
  last_failure_at: isoOrNull(breaker.lastFailureAt),
  last_error: breaker.lastError,
  failure_threshold: breaker.failureThreshold,
  open_cooldown_seconds: breaker.openCooldownSeconds,
  half_open_probe_count: breaker.halfOpenProbeCount,
  probe_timeout_seconds: breaker.probeTimeoutSeconds,
  return_spread_seconds: breaker.returnSpreadSeconds,
});

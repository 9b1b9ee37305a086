// Node's types are asked for here: TypeScript 6 and newer look for none by themselves.
/// <reference types="node" preserve="true" />

export type { Breakers } from "./client/breakers.ts";
export type { ConnectOptions } from "./client/connect-options.ts";
export { createMetrics, type Metrics, type MetricsOptions } from "./client/metrics.ts";
export { Millrace } from "./client/millrace.ts";
export type { EnqueueOptions } from "./client/new-job.ts";
export type { NotificationOptions, Notifications } from "./client/notifications.ts";
export type { ResultOptions } from "./client/result.ts";
export type { DrainWait, Tenants } from "./client/tenants.ts";
export type {
  QueueTriggerOptions,
  TimeTriggerOptions,
  TriggerChanges,
  TriggerOptions,
} from "./client/trigger-settings.ts";
export type { Triggers } from "./client/triggers.ts";
export type {
  NewWebhookOptions,
  WebhookChanges,
  Webhooks,
  WebhookWithSecret,
} from "./client/webhooks.ts";
export type { WorkOptions } from "./client/workers.ts";
export type { Config, Options } from "./config.ts";
export { builtInCategories, type Category, type CategoryOptions } from "./domain/categories.ts";
export {
  BreakerOpenError,
  type BreakerSettings,
  type BreakerState,
} from "./domain/circuit-breaker.ts";
export type { MissedSlots } from "./domain/due-slots.ts";
export {
  type Classifier,
  type ErrorClass,
  type Failure,
  type JobError,
  JobFailure,
  NonRetryableError,
  RateLimitedError,
  RetryableError,
  Snooze,
} from "./domain/error-class.ts";
export { type ErrorCode, errorCodes, MillraceError } from "./domain/errors.ts";
export type { ClaimedJob, Job, JobMeta } from "./domain/job.ts";
export { type JobState, jobStates } from "./domain/job-state.ts";
export { type NotificationKind, notificationKinds } from "./domain/notification.ts";
export type { Outcome } from "./domain/outcome.ts";
export {
  createEnvelope,
  type Envelope,
  type PayloadCheck,
  type PayloadLimits,
  type PayloadProblem,
  validatePayload,
} from "./domain/payload-rules.ts";
export type { Upcaster, Upcasters } from "./domain/payload-version.ts";
export {
  type BackoffOptions,
  exponentialBackoff,
  type RetryPolicy,
} from "./domain/retry-policy.ts";
export type { Timeline, TimelineEntry } from "./domain/timeline.ts";
export type { Trigger, TriggerError, TriggerType } from "./domain/trigger.ts";
export type { Explanation, Holder, WaitingReason } from "./domain/waiting-reason.ts";
export type { WebhookOptions } from "./domain/webhook-url.ts";
export type { ServiceReport } from "./manager/leader-service.ts";
export type { Manager } from "./manager/manager.ts";
export type { EventMap, EventName } from "./runtime/events.ts";
export {
  type VerifiedWebhook,
  type VerifyWebhookOptions,
  verifyWebhook,
} from "./runtime/webhook-signature.ts";
export type { Breaker } from "./store/breaker.ts";
export type { Rate, Tenant, TenantSettings } from "./store/flow.ts";
export type {
  Enqueued,
  Queue,
  QueueCounts,
  QueueSettings,
  Reprocessed,
  Transaction,
  WorkerPresence,
} from "./store/store.ts";
export type { ItemOutcome, TriggerFilter } from "./store/triggers.ts";
export type { Webhook } from "./store/webhook.ts";
export { JobAborted } from "./worker/abort-handle.ts";
export type { BreakerGuard, BreakerRunOptions } from "./worker/breaker-guard.ts";
export {
  type AnyJobDefinition,
  defineJob,
  type Handler,
  type JobContext,
  type JobDefinition,
  type JobOptions,
  type RateByKey,
} from "./worker/job-definition.ts";
export type { Worker } from "./worker/worker.ts";

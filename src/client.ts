// The client over HTTP. Nothing here needs Node: it runs in browsers, too.

export type { RemoteBreaker, RemoteBreakers } from "./client/http/breakers.ts";
export { type CallOptions, HttpCaller, type HttpClientOptions } from "./client/http/caller.ts";
export {
  type FindOptions,
  HttpClient,
  type WaitOptions,
} from "./client/http/http-client.ts";
export type { RemoteEnqueueOptions } from "./client/http/new-remote-job.ts";
export type {
  RemoteDeadLetter,
  RemoteDeadLetterFilter,
  RemoteQueue,
} from "./client/http/operations.ts";
export type { FoundJob, RemoteExplanation, RemoteJob } from "./client/http/remote-job.ts";
export {
  BusinessException,
  type RobotItem,
  type RobotOptions,
  type RobotRun,
} from "./client/http/robot-options.ts";
export { RobotWorker } from "./client/http/robot-worker.ts";
export type { ErasedTenant, RemoteTenants } from "./client/http/tenants.ts";
export { type ErrorCode, errorCodes, MillraceError } from "./domain/errors.ts";
export type { Tenant, TenantSettings } from "./store/flow.ts";
export type { QueueSettings } from "./store/queue.ts";
export type { Enqueued, Reprocessed, WorkerPresence } from "./store/store.ts";
export { defineJob, type JobDefinition } from "./worker/job-definition.ts";

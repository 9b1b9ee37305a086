// Node's types are asked for here: TypeScript 6 and newer look for none by themselves.
/// <reference types="node" preserve="true" />

export type { DrainOptions } from "./testing/drain-options.ts";
export type { Drained, DrainedRun } from "./testing/drained.ts";
export type { EnqueuedJob } from "./testing/enqueued-job.ts";
export type { JobMatch, JobRef } from "./testing/match.ts";
export {
  createTestMillrace,
  type TestMillrace,
  type TestMillraceOptions,
} from "./testing/test-millrace.ts";

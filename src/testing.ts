export type { DrainOptions } from "./testing/drain.ts";
export type { Drained, DrainedRun } from "./testing/drained.ts";
export type { EnqueuedJob } from "./testing/enqueue-record.ts";
export type { JobMatch, JobRef } from "./testing/match.ts";
export {
  createTestMillrace,
  type TestMillrace,
  type TestMillraceOptions,
} from "./testing/test-millrace.ts";

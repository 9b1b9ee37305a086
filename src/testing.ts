// Node's types are asked for here: TypeScript 6 and newer look for none by themselves.
/// <reference types="node" preserve="true" />

export type { DrainOptions } from "./testing/drain.ts";
export type { Drained, DrainedRun } from "./testing/drained.ts";
export type { EnqueuedJob } from "./testing/enqueue-record.ts";
export type { JobMatch, JobRef } from "./testing/match.ts";
export {
  createTestMillrace,
  type TestMillrace,
  type TestMillraceOptions,
} from "./testing/test-millrace.ts";

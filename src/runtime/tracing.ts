// What is traced, whoever does it. See docs/design/tracing.md.

import type { ClaimedJob } from "../domain/job.ts";
import type { Outcome } from "../domain/outcome.ts";

/** W3C trace context, as it travels with a job or a request. */
export interface TraceContext {
  readonly traceparent: string;
  readonly tracestate?: string;
}

export interface EnqueueSpan {
  readonly type: string;
  readonly queue: string;
  readonly jobs: number;
}

export interface Tracing {
  /** A span around an enqueue, if it belongs to a trace; the jobs are to carry what `work` is given. */
  enqueue<T>(
    about: EnqueueSpan,
    work: (carried: TraceContext | undefined) => Promise<T>,
  ): Promise<T>;
  /** A span around one run, with the enqueue as its parent, and one around the storing of its end. */
  run(job: ClaimedJob, work: () => Outcome | Promise<Outcome>): Outcome | Promise<Outcome>;
  /** Inside the trace that the caller names, unless there is one already. */
  within<T>(headers: Readonly<Record<string, unknown>>, work: () => T): T;
}

// Which enqueued jobs are those that a test means, and if not, why not.

import { isDeepStrictEqual } from "node:util";
import { checkOptions, type Known, knownNames } from "../domain/check-options.ts";
import { type Priorities, weightOf } from "../domain/priority.ts";
import type { JobDefinition } from "../worker/job-definition.ts";
import type { EnqueuedJob } from "./enqueued-job.ts";

/** A definition, or the name of a type. */
export type JobRef<Input> = JobDefinition<Input, never, unknown> | string;

export type Subset<T> = T extends readonly (infer Element)[]
  ? readonly Subset<Element>[]
  : T extends object
    ? { readonly [Key in keyof T]?: Subset<T[Key]> }
    : T;

export interface JobMatch<Input = unknown> {
  /** The fields that matter, or a function that judges the stored payload. */
  readonly payload?: Subset<Input> | ((payload: Input) => boolean);
  readonly queue?: string;
  readonly tenant?: string;
  readonly key?: string;
  readonly reference?: string;
  readonly priority?: string;
  readonly delayMs?: number;
  readonly state?: EnqueuedJob["state"];
}

const known = knownNames({
  ...{ payload: true, queue: true, tenant: true, key: true, reference: true, priority: true },
  ...{ delayMs: true, state: true },
} satisfies Known<JobMatch>);

export const typeOf = (job: { readonly type: string } | string): string =>
  typeof job === "string" ? job : job.type;

export function matching(
  jobs: readonly EnqueuedJob[],
  match: JobMatch,
  priorities: Priorities,
): EnqueuedJob[] {
  checkOptions("a match of enqueued jobs", match, known);
  return jobs.filter((job) => differences(job, match, priorities).length === 0);
}

export function differences(job: EnqueuedJob, match: JobMatch, priorities: Priorities): string[] {
  const { payload, key, priority, ...plain } = match;
  const found: string[] = [];
  const compare = (name: string, expected: unknown, actual: unknown) => {
    if (expected !== undefined && expected !== actual)
      found.push(`${name} is ${show(actual)}, not ${show(expected)}`);
  };
  if (typeof payload === "function") {
    if (!payload(job.payload)) found.push("the payload is not what the function wants");
  } else if (payload !== undefined) compareSubset("payload", payload, job.payload, found);
  for (const [name, expected] of Object.entries(plain)) {
    compare(name, expected, job[name as keyof typeof plain]);
  }
  compare("key", key, job.idempotencyKey === job.id ? null : job.idempotencyKey);
  if (priority !== undefined && weightOf(priority, priorities) !== job.weight)
    found.push(`priority is ${job.meta.priority ?? "normal"}, not ${priority}`);
  return found;
}

function compareSubset(path: string, expected: unknown, actual: unknown, found: string[]): void {
  if (isObject(expected) && isObject(actual)) {
    for (const [name, value] of Object.entries(expected))
      compareSubset(`${path}.${name}`, value, actual[name], found);
  } else if (Array.isArray(expected) && Array.isArray(actual)) {
    if (expected.length !== actual.length)
      found.push(`${path} has ${actual.length} elements, not ${expected.length}`);
    else
      for (const [i, value] of expected.entries())
        compareSubset(`${path}[${i}]`, value, actual[i], found);
  } else if (!isDeepStrictEqual(expected, actual)) {
    found.push(`${path} is ${show(actual)}, not ${show(expected)}`);
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export function show(value: unknown): string {
  const text = typeof value === "function" ? "(a function)" : (JSON.stringify(value) ?? "absent");
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}

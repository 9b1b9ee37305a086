// Which enqueued jobs are those that a test means, and if not, why not.

import { isDeepStrictEqual } from "node:util";
import { checkOptions, checkWait, type Known, knownNames } from "../domain/check-options.ts";
import { MillraceError } from "../domain/errors.ts";
import { jobStates } from "../domain/job-state.ts";
import { type Priorities, weightOf } from "../domain/priority.ts";
import { oneOf, textOf } from "../domain/setting-values.ts";
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

export function typeOf(job: { readonly type: string } | string | null | undefined): string {
  const type: unknown = typeof job === "string" ? job : job?.type;
  if (typeof type === "string") return type;
  const message = "A job is named by its definition, or by the name of its type.";
  throw new MillraceError("OPTION_INVALID", message);
}

/** Every slip would match nothing, and an assertion that there is none would hold. */
export function checkMatch(match: JobMatch, priorities: Priorities, more: string[] = []): void {
  checkOptions("a match of enqueued jobs", match, new Set([...known, ...more]));
  const { queue, tenant, key, reference, priority, delayMs, state } = match;
  for (const [name, value] of Object.entries({ queue, tenant, key, reference }))
    textOf(name, value);
  if (priority !== undefined) weightOf(priority, priorities);
  checkWait("delayMs", delayMs);
  if (state !== undefined) oneOf("state", state, jobStates);
}

export function matching(
  jobs: readonly EnqueuedJob[],
  match: JobMatch,
  priorities: Priorities,
): EnqueuedJob[] {
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
    if (!judges(payload(job.payload))) found.push("the payload is not what the function wants");
  } else if (payload !== undefined) compareSubset("payload", payload, job.payload, found);
  for (const [name, expected] of Object.entries(plain)) {
    compare(name, expected, job[name as keyof typeof plain]);
  }
  compare("key", key, job.idempotencyKey === job.id ? null : job.idempotencyKey);
  if (priority !== undefined && weightOf(priority, priorities) !== job.weight)
    found.push(`priority is ${job.meta.priority ?? "normal"}, not ${priority}`);
  return found;
}

/** A promise would be taken for a yes, whatever becomes of it. */
function judges(answer: unknown): boolean {
  if (typeof answer !== "object" || answer === null || !("then" in answer)) return Boolean(answer);
  Promise.resolve(answer).catch(() => {});
  const message =
    "The function that judges a payload answers with a promise: it must answer at once.";
  throw new MillraceError("OPTION_INVALID", message);
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

import type { StandardSchemaV1 } from "@standard-schema/spec";
import { type Known, knownNames } from "../domain/check-options.ts";
import type { Classifier } from "../domain/error-class.ts";
import { MillraceError } from "../domain/errors.ts";
import type { ClaimedJob } from "../domain/job.ts";
import type { Upcasters } from "../domain/payload-version.ts";
import {
  type BackoffOptions,
  exponentialBackoff,
  type RetryPolicy,
} from "../domain/retry-policy.ts";
import type { JobLog } from "../runtime/log.ts";
import type { Rate } from "../store/flow.ts";
import { checkDefinition } from "./check-definition.ts";

export interface JobContext<Payload> {
  readonly payload: Payload;
  /** Aborts on cancel, on a lost lease, on stop and when maxRuntimeMs is over; `reason` says which. */
  readonly signal: AbortSignal;
  readonly attempt: number;
  readonly log: JobLog;
  readonly job: ClaimedJob;
}

export type Handler<Payload, Result> = (context: JobContext<Payload>) => Promise<Result> | Result;

type OfPayload<Schema extends StandardSchemaV1, Found> = (
  payload: StandardSchemaV1.InferInput<Schema>,
) => Found;

export interface RateByKey<Input> extends Rate {
  readonly key: (payload: Input) => string | undefined;
}

/** What is found for a payload when it is enqueued. Whoever calls them has the right payload. */
export interface PayloadRules {
  readonly priority: ((payload: unknown) => string | undefined) | undefined;
  readonly delayMs: ((payload: unknown) => number | undefined) | undefined;
  readonly orderingKey: ((payload: unknown) => string | undefined) | undefined;
  readonly limitKey: ((payload: unknown) => string | undefined) | undefined;
  readonly rateLimit: RateByKey<unknown> | undefined;
}

export interface JobOptions<Schema extends StandardSchemaV1, Result> {
  readonly type: string;
  readonly queue?: string;
  /** A label, or a rule that finds one for a payload when it is enqueued. */
  readonly priority?: string | OfPayload<Schema, string | undefined>;
  /** How long a job waits before it is ready, found when it is enqueued. */
  readonly delayMs?: OfPayload<Schema, number | undefined>;
  /** Jobs of one key run one at a time, in order. */
  readonly orderingKey?: OfPayload<Schema, string | undefined>;
  /** Jobs of one key share `keyConcurrency` and `keyThrottle` of their queue. */
  readonly limitKey?: OfPayload<Schema, string | undefined>;
  /** How much may be enqueued for each key. */
  readonly rateLimit?: RateByKey<StandardSchemaV1.InferInput<Schema>>;
  /** What becomes of a job that meets a rate limit: an error (the default), or a delay. */
  readonly whenRateLimited?: "refuse" | "delay";
  readonly payload?: Schema;
  /** Paths of payload fields, such as "order.id", that jobs can be found by. */
  readonly labels?: readonly string[];
  readonly category?: string;
  readonly additionalRequired?: readonly string[];
  readonly payloadVersion?: string;
  readonly upcasters?: Upcasters;
  readonly maxAttempts?: number;
  readonly maxRuntimeMs?: number;
  readonly expiresInMs?: number;
  /** The outside platform that the handler calls: while its breaker is open, these jobs wait. */
  readonly platform?: string;
  readonly retry?: RetryPolicy | BackoffOptions;
  readonly classify?: Classifier;
  /** Runs begin only when the job is stored; otherwise a worker beside the producer may begin while it is committed. */
  readonly waitForCommit?: boolean;
  readonly run?: Handler<StandardSchemaV1.InferOutput<Schema>, Result>;
}

/** A kind of job: its name, its rules and, where it runs, its handler. */
export interface JobDefinition<Input = unknown, Output = Input, Result = unknown> {
  readonly type: string;
  readonly queue: string;
  readonly priority: string | undefined;
  /** null: nothing is found from payloads. */
  readonly rules: PayloadRules | null;
  readonly delaysWhenLimited: boolean;
  readonly schema: StandardSchemaV1<Input, unknown> | undefined;
  readonly labels: readonly string[] | undefined;
  readonly category: string | undefined;
  readonly additionalRequired: readonly string[] | undefined;
  readonly payloadVersion: string | undefined;
  readonly upcasters: Upcasters | undefined;
  readonly maxAttempts: number | undefined;
  readonly maxRuntimeMs: number | undefined;
  readonly expiresInMs: number | undefined;
  readonly platform: string | undefined;
  readonly retry: RetryPolicy | undefined;
  readonly classify: Classifier | undefined;
  readonly waitForCommit: boolean;
  readonly run: Handler<Output, Result> | undefined;
}

/** Any definition, for lists of them; handlers are contravariant in their payload. */
export type AnyJobDefinition = JobDefinition<unknown, never, unknown>;

export const isDefinition = (one: AnyJobDefinition | null | undefined): boolean =>
  typeof one?.type === "string" && typeof one.queue === "string";

const known = knownNames({
  ...{ type: true, queue: true, priority: true, delayMs: true, orderingKey: true, limitKey: true },
  ...{ rateLimit: true, whenRateLimited: true, payload: true, category: true, platform: true },
  ...{ additionalRequired: true, payloadVersion: true, upcasters: true, maxAttempts: true },
  ...{
    labels: true,
    maxRuntimeMs: true,
    expiresInMs: true,
    retry: true,
    classify: true,
    waitForCommit: true,
    run: true,
  },
} satisfies Known<JobOptions<StandardSchemaV1, unknown>>);

export function defineJob<
  Schema extends StandardSchemaV1 = StandardSchemaV1<unknown>,
  Result = unknown,
>(
  options: JobOptions<Schema, Result>,
): JobDefinition<
  StandardSchemaV1.InferInput<Schema>,
  StandardSchemaV1.InferOutput<Schema>,
  Result
> {
  checkDefinition(options, known);
  const { retry } = options;
  const definition: JobDefinition<
    StandardSchemaV1.InferInput<Schema>,
    StandardSchemaV1.InferOutput<Schema>,
    Result
  > = {
    type: checkName("type", options.type),
    queue: checkName("queue", options.queue === undefined ? "default" : options.queue),
    priority: typeof options.priority === "string" ? options.priority : undefined,
    rules: rulesOf(options),
    delaysWhenLimited: checkWhenLimited(options.whenRateLimited),
    schema: options.payload as StandardSchemaV1<StandardSchemaV1.InferInput<Schema>> | undefined,
    labels: checkLabels(options.labels),
    category: options.category,
    additionalRequired: options.additionalRequired,
    payloadVersion: options.payloadVersion,
    upcasters: options.upcasters,
    maxAttempts: checkNumber("maxAttempts", options.maxAttempts, 1, 1000),
    maxRuntimeMs: checkNumber("maxRuntimeMs", options.maxRuntimeMs, 1, 2_147_483_647),
    expiresInMs: checkNumber("expiresInMs", options.expiresInMs, 1, Number.MAX_SAFE_INTEGER),
    platform: options.platform === undefined ? undefined : checkName("platform", options.platform),
    retry: typeof retry === "object" ? exponentialBackoff(retry) : retry,
    classify: options.classify,
    waitForCommit: options.waitForCommit ?? false,
    run: options.run,
  };
  return Object.freeze(definition);
}

function rulesOf<Schema extends StandardSchemaV1, Result>(
  options: JobOptions<Schema, Result>,
): PayloadRules | null {
  const { priority, delayMs, orderingKey, limitKey, rateLimit } = options;
  const ofPayload = typeof priority === "function" ? priority : undefined;
  if (rateLimit !== undefined) {
    checkNumber("rateLimit.limit", rateLimit.limit, 1, 2_147_483_647);
    checkNumber("rateLimit.windowMs", rateLimit.windowMs, 10, 86_400_000);
  }
  const rules = { priority: ofPayload, delayMs, orderingKey, limitKey, rateLimit };
  if (Object.values(rules).every((rule) => rule === undefined)) return null;
  return rules as unknown as PayloadRules;
}

function checkWhenLimited(value: "refuse" | "delay" = "refuse"): boolean {
  if (value === "refuse" || value === "delay") return value === "delay";
  throw new MillraceError("OPTION_INVALID", 'whenRateLimited must be "refuse" or "delay".');
}

const mostLabels = 10;

function checkLabels(labels: readonly string[] | undefined): readonly string[] | undefined {
  if (labels === undefined || (Array.isArray(labels) && labels.length === 0)) return undefined;
  const isList = Array.isArray(labels) && labels.length <= mostLabels;
  if (isList && labels.every((name) => isName(name) && !name.includes(":")))
    return Object.freeze([...new Set(labels)]);
  throw new MillraceError(
    "OPTION_INVALID",
    `labels must be up to ${mostLabels} paths of payload fields, without colons.`,
  );
}

export const isName = (name: unknown): name is string =>
  typeof name === "string" && name.length > 0 && name.length <= 200 && printable.test(name);

export function checkName(what: string, name: unknown): string {
  if (isName(name)) return name;
  throw new MillraceError(
    "OPTION_INVALID",
    `A job's ${what} must be a text of 1 to 200 printable characters.`,
  );
}

/** Not of blanks alone; marks and joiners belong to the character before them. */
const printable = /^ *[\p{L}\p{N}\p{P}\p{S}][\p{L}\p{N}\p{P}\p{S}\p{M}\p{Join_Control} ]*$/u;

export function checkNumber(
  what: string,
  value: number | undefined,
  min: number,
  max: number,
): number | undefined {
  if (value === undefined || (Number.isInteger(value) && value >= min && value <= max))
    return value;
  throw new MillraceError(
    "OPTION_INVALID",
    `${what} must be a whole number from ${min} to ${max}.`,
  );
}

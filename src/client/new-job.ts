// From a definition, a payload and options to a job that may be stored: all rules are checked here.

import { createHash } from "node:crypto";
import type { Config } from "../config.ts";
import { checkOptions, type Known, knownNames } from "../domain/check-options.ts";
import { MillraceError } from "../domain/errors.ts";
import type { JobMeta } from "../domain/job.ts";
import { payloadProblem } from "../domain/payload-problems.ts";
import { payloadError, writePayload } from "../domain/payload-rules.ts";
import { contradicts, keptVersion } from "../domain/payload-version.ts";
import { weightOf } from "../domain/priority.ts";
import type { Events } from "../runtime/events.ts";
import { uuidv7 } from "../runtime/uuid.ts";
import type { NewJob, Queue, Transaction } from "../store/store.ts";
import { checkName, checkNumber, type JobDefinition } from "../worker/job-definition.ts";
import { describeIssues, judgedBy, pathOf } from "../worker/validate.ts";
import { withRules } from "./job-rules.ts";
import { labelsOf } from "./labels.ts";
import { LaneNumbers } from "./lane-numbers.ts";

export interface EnqueueOptions {
  readonly tenant?: string;
  /** Idempotency key: the same request again gives the same job, a different one is refused. */
  readonly key?: string;
  readonly reference?: string;
  readonly correlationId?: string;
  readonly priority?: string;
  readonly delayMs?: number;
  readonly expiresInMs?: number;
  readonly maxAttempts?: number;
  /** Jobs of one key (and tenant) run one at a time, in order. */
  readonly orderingKey?: string;
  /** Jobs of one key (and tenant) share the queue's `keyConcurrency` and `keyThrottle`. */
  readonly limitKey?: string;
  /** Anything with query(text, values) in a transaction of yours: the job is there if you commit. */
  readonly tx?: Transaction;
}

const known = knownNames({
  ...{ tenant: true, key: true, reference: true, correlationId: true, priority: true },
  ...{ delayMs: true, expiresInMs: true, maxAttempts: true, orderingKey: true, limitKey: true },
  tx: true,
} satisfies Known<EnqueueOptions>);

/** The same for all of them, or for each what it says. */
export type OptionsForMany<Input> =
  | EnqueueOptions
  | ((payload: Input, index: number) => EnqueueOptions);

/** Said by who says nothing. */
export const noOptions: EnqueueOptions = Object.freeze({});

type Definition = JobDefinition<unknown, unknown, unknown>;

const lanes = new LaneNumbers();

export const longest = 100 * 365 * 86_400_000;

/** What no type checker lets pass, and plain JavaScript does. */
export function checkCall(definition: Definition, options: EnqueueOptions): void {
  if (typeof definition?.type !== "string" || typeof definition.queue !== "string")
    throw new MillraceError("OPTION_INVALID", "What is enqueued must be made by defineJob.");
  if (options === noOptions) return;
  checkOptions("an enqueue's options", options, known);
  if (options.tx !== undefined && typeof options.tx?.query !== "function")
    throw new MillraceError("OPTION_INVALID", "tx must have a function query(text, values).");
}

/** The payload as the schema sees it must be valid; what is stored is what was given. */
export function validateSchema(definition: Definition, payload: unknown): void | Promise<void> {
  if (definition.schema === undefined) return;
  const result = judgedBy(definition.schema, payload);
  return result instanceof Promise ? result.then(refuseIssues) : refuseIssues(result);
}

function refuseIssues(result: {
  issues?: readonly Parameters<typeof pathOf>[0][] | undefined;
}): void {
  if (result.issues === undefined) return;
  throw new MillraceError(
    "PAYLOAD_INVALID",
    `The payload is not valid: ${describeIssues(result.issues)}`,
    {
      details: {
        problems: result.issues.map((issue) => ({
          code: "schema",
          path: pathOf(issue),
          message: issue.message,
        })),
      },
    },
  );
}

function laneFor(tenant: string, { orderingKey, limitKey }: EnqueueOptions): number | undefined {
  const key = orderingKey === undefined ? limitKey : orderingKey;
  if (key === undefined) return undefined;
  if (orderingKey !== undefined && limitKey !== undefined) {
    throw new MillraceError("OPTION_INVALID", "A job has an orderingKey or a limitKey, not both.");
  }
  const kind = orderingKey === undefined ? "limited" : "ordered";
  checkName(`${kind === "ordered" ? "ordering" : "limit"}Key`, key);
  return lanes.of(tenant, key, kind);
}

export function newJob(
  definition: Definition,
  payload: unknown,
  wanted: EnqueueOptions,
  queue: Queue,
  config: Config,
  events: Events,
): NewJob {
  const given = payload === undefined ? null : payload;
  const version = keptVersion(definition.payloadVersion, given);
  const { category, isPlain, job } = commonOf(definition, queue, config);
  const json = written(definition, given, category, config, events);
  if (isPlain && wanted === noOptions && version === undefined)
    return { ...job, id: uuidv7(), payload: json };
  const options = withRules(definition, given, wanted);
  const labels = labelsOf(definition.labels, given);
  const named = category === undefined ? options : fromEnvelope(given, options);
  const tenant = named.tenant === undefined ? "default" : checkName("tenant", named.tenant);
  const { key, reference } = named;
  return {
    id: uuidv7(),
    type: definition.type,
    queueId: queue.id,
    tenant,
    weight: weightOf(options.priority ?? definition.priority, config.priorities),
    maxAttempts:
      checkNumber("maxAttempts", options.maxAttempts, 1, 1000) ??
      definition.maxAttempts ??
      queue.maxAttempts ??
      config.maxAttempts,
    payload: json,
    delayMs: positive(checkNumber("delayMs", options.delayMs, 0, longest)),
    expiresInMs:
      checkNumber("expiresInMs", options.expiresInMs, 1, longest) ?? definition.expiresInMs,
    maxRuntimeMs: definition.maxRuntimeMs,
    waitForCommit: definition.waitForCommit,
    correlationId: optionalName("correlationId", named.correlationId),
    key: optionalName("key", key),
    requestHash: key === undefined ? undefined : requestHash(definition, tenant, given),
    reference: optionalName("reference", reference),
    uniqueReference: queue.enforceUniqueReference && reference !== undefined,
    lane: laneFor(tenant, options),
    labels,
    meta: metaOf(definition, version, category, options),
  };
}

/** The payload's text, if all rules allow it. */
export function written(
  { type, additionalRequired, payloadVersion }: Definition,
  payload: unknown,
  category: string | undefined,
  { categories, payloadLimits: limits }: Config,
  events: Events,
): string {
  const { check, json } = writePayload(payload, {
    ...{ category, additionalRequired, categories, limits },
  });
  if (!check.ok || json === undefined) throw payloadError(check.errors);
  if (payloadVersion !== undefined && contradicts(payloadVersion, payload))
    throw payloadError([payloadProblem("payload_version_contradicted", "$.payload_version")]);
  if (check.warnings.length > 0) {
    const { sizeBytes, warnings: problems } = check;
    events.emit("job.payload_large", { type, sizeBytes, problems });
  }
  return json;
}

interface Common {
  readonly queue: Queue;
  readonly config: Config;
  readonly category: string | undefined;
  /** Is nothing in the payload but the payload: no labels, no key, no version of its own? */
  readonly isPlain: boolean;
  /** What those are like that are enqueued without options, if it is plain. */
  readonly job: NewJob;
}

const commons = new WeakMap<Definition, Common>();

/** What all jobs of a definition have in common: worked out once. */
function commonOf(definition: Definition, queue: Queue, config: Config): Common {
  const known = commons.get(definition);
  if (known?.queue === queue && known.config === config) return known;
  const { type, priority, maxRuntimeMs, expiresInMs, waitForCommit, rules, labels } = definition;
  const category = config.categories.ofJob(type, definition.category);
  const job = {
    ...{ id: "", type, queueId: queue.id, tenant: "default", payload: "" },
    weight: weightOf(priority, config.priorities),
    maxAttempts: definition.maxAttempts ?? queue.maxAttempts ?? config.maxAttempts,
    ...{ maxRuntimeMs, expiresInMs, waitForCommit, uniqueReference: false },
    meta: metaOf(definition, undefined, undefined, noOptions),
  };
  const isPlain = category === undefined && rules === null && labels === undefined;
  const common = { queue, config, category, isPlain, job };
  commons.set(definition, common);
  return common;
}

const positive = (value: number | undefined) => (value === 0 ? undefined : value);

const optionalName = (what: string, value: string | undefined) =>
  value === undefined ? undefined : checkName(what, value);

/** A governed job says itself whose it is; options may repeat that, not contradict it. */
function fromEnvelope(payload: unknown, options: EnqueueOptions): EnqueueOptions {
  const { tenant_id, correlation_id, idempotency_key } = payload as Record<string, unknown>;
  const named = {
    tenant: text(tenant_id),
    correlationId: text(correlation_id),
    key: text(idempotency_key),
  };
  for (const [name, value] of Object.entries(named)) {
    const other = options[name as keyof typeof named];
    if (other !== undefined && other !== value) {
      throw new MillraceError(
        "PAYLOAD_INVALID",
        `The option ${name} contradicts the payload's envelope.`,
      );
    }
  }
  return {
    ...options,
    ...Object.fromEntries(Object.entries(named).filter(([, value]) => value !== undefined)),
  };
}

/** The rules allow numbers for ids. */
const text = (id: unknown) => (id === undefined ? undefined : String(id));

function metaOf(
  definition: Definition,
  version: string | undefined,
  category: string | undefined,
  options: EnqueueOptions,
): JobMeta | undefined {
  const priority = options.priority ?? definition.priority;
  const { orderingKey, limitKey } = options;
  // One by one: most jobs have none of them, and this is on the way of every job.
  const meta: { -readonly [Name in keyof JobMeta]: JobMeta[Name] } = {};
  if (priority !== undefined) meta.priority = priority;
  if (category !== undefined) meta.category = category;
  if (version !== undefined) meta.payloadVersion = version;
  if (orderingKey !== undefined) meta.orderingKey = orderingKey;
  if (limitKey !== undefined) meta.limitKey = limitKey;
  for (const _ in meta) return meta;
  return undefined;
}

function requestHash(definition: Definition, tenant: string, payload: unknown): string {
  const request = canonical([definition.type, definition.queue, tenant, payload]);
  return createHash("sha256").update(request).digest("hex");
}

/** JSON with sorted keys: the same request is the same text. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, inner) =>
    typeof inner === "object" && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}

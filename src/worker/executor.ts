// One run of one job, as a pipeline of named steps: lift the payload → validate → run → outcome.

import { NonRetryableError } from "../domain/error-class.ts";
import { MillraceError } from "../domain/errors.ts";
import type { ClaimedJob } from "../domain/job.ts";
import { type Outcome, outcomeOfFailure } from "../domain/outcome.ts";
import { defaultPayloadVersion, upcast, versionOf } from "../domain/payload-version.ts";
import { defaultRetryPolicy, type RetryPolicy } from "../domain/retry-policy.ts";
import { tameError } from "../domain/tame-error.ts";
import type { Log } from "../runtime/log.ts";
import type { Tracing } from "../runtime/tracing.ts";
import type { AbortSource } from "./abort-handle.ts";
import { type BreakerGuard, type BreakerRunOptions, takeFailedProbe } from "./breaker-guard.ts";
import type { Handler, JobContext, JobDefinition } from "./job-definition.ts";
import type { Registry } from "./registry.ts";
import { describeIssues } from "./validate.ts";

export interface ExecutorOptions {
  readonly registry: Registry;
  readonly log: Log;
  /** null: nobody traces. */
  readonly tracing: Tracing | null;
  readonly random: () => number;
  readonly resultLimitBytes: number;
  readonly retryPolicy?: RetryPolicy | undefined;
  /** Stands before the platform of that name. */
  readonly breaker: (platform: string) => Pick<BreakerGuard, "run">;
}

const completedWithoutResult: Outcome = Object.freeze({
  kind: "completed",
  result: undefined,
  json: undefined,
});

type Definition = JobDefinition<unknown, unknown, unknown>;

/** A plain object, and the same whichever way the job came: what else its holder knows of it is not shown. */
const shown = (job: ClaimedJob): ClaimedJob => ({
  id: job.id,
  type: job.type,
  tenant: job.tenant,
  queueId: job.queueId,
  // As it was stored, read when it is asked for.
  get payload() {
    return job.payload;
  },
  attempt: job.attempt,
  maxAttempts: job.maxAttempts,
  crashCount: job.crashCount,
  maxRuntimeMs: job.maxRuntimeMs,
  correlationId: job.correlationId,
  idempotencyKey: job.idempotencyKey,
  reference: job.reference,
  meta: job.meta,
  timeline: job.timeline,
  token: job.token,
  createdAt: job.createdAt,
  readyAt: job.readyAt,
  startedAt: job.startedAt,
});

/** A class, not a literal: getters on a literal are made anew for every run. */
class RunContext implements JobContext<unknown> {
  readonly #job: ClaimedJob;
  #shown: ClaimedJob | null = null;
  readonly payload: unknown;
  readonly #abort: AbortSource;
  readonly #log: Log;

  constructor(job: ClaimedJob, payload: unknown, abort: AbortSource, log: Log) {
    this.#job = job;
    this.payload = payload;
    this.#abort = abort;
    this.#log = log;
  }

  get job(): ClaimedJob {
    this.#shown ??= shown(this.#job);
    return this.#shown;
  }

  get attempt(): number {
    return this.#job.attempt;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get log(): Log {
    const { id, type, correlationId } = this.#job;
    return this.#log.child({ job: id, type, correlationId });
  }
}

export class Executor {
  readonly #options: ExecutorOptions;

  constructor(options: ExecutorOptions) {
    this.#options = options;
  }

  /** At once where the handler and its schema answer at once: an await costs a short run dearly. */
  execute(job: ClaimedJob, abort: AbortSource): Outcome | Promise<Outcome> {
    const { tracing } = this.#options;
    if (tracing === null) return this.#execute(job, abort);
    return tracing.run(job, () => this.#execute(job, abort));
  }

  #execute(job: ClaimedJob, abort: AbortSource): Outcome | Promise<Outcome> {
    const definition = this.#options.registry.definition(job.type);
    try {
      const payload = lift(job, definition);
      if (definition?.schema !== undefined)
        return this.#executeLater(job, payload, abort, definition);
      const returned = this.#run(job, payload, abort);
      if (isThenable(returned)) return this.#outcomeOf(job, returned, abort, definition);
      return this.#completed(returned);
    } catch (error) {
      return this.#outcomeOfThrown(job, error, abort, definition);
    }
  }

  async #executeLater(
    job: ClaimedJob,
    payload: unknown,
    abort: AbortSource,
    definition: Definition,
  ): Promise<Outcome> {
    try {
      const valid =
        definition.schema === undefined ? payload : await validate(payload, definition.schema);
      return this.#completed(await this.#run(job, valid, abort));
    } catch (error) {
      return this.#outcomeOfThrown(job, error, abort, definition);
    }
  }

  async #outcomeOf(
    job: ClaimedJob,
    returned: PromiseLike<unknown>,
    abort: AbortSource,
    definition: Definition | undefined,
  ): Promise<Outcome> {
    try {
      return this.#completed(await returned);
    } catch (error) {
      return this.#outcomeOfThrown(job, error, abort, definition);
    }
  }

  #completed(result: unknown): Outcome {
    if (result === undefined) return completedWithoutResult;
    return { kind: "completed", result, json: this.#toJson(result) };
  }

  #run(job: ClaimedJob, payload: unknown, abort: AbortSource): unknown {
    const { registry, log } = this.#options;
    const handler = registry.handler(job.type);
    if (handler === undefined) throw new MillraceError("UNKNOWN_JOB_TYPE");
    const context = new RunContext(job, payload, abort, log);
    const definition = registry.definition(job.type);
    const maxRuntimeMs = job.maxRuntimeMs ?? definition?.maxRuntimeMs;
    if (definition?.platform === undefined) return call(handler, context, abort, maxRuntimeMs);
    return this.#options
      .breaker(definition.platform)
      .run(() => call(handler, context, abort, maxRuntimeMs), callOptions(definition, abort));
  }

  /** What is stored; undefined for nothing. */
  #toJson(result: unknown): string | undefined {
    if (result === undefined || result === null) return undefined;
    let text: string | undefined;
    try {
      text = JSON.stringify(result);
    } catch (cause) {
      throw new NonRetryableError("RESULT_INVALID: the result cannot be stored as JSON", { cause });
    }
    if (text === undefined || unstorable.test(text)) {
      throw new NonRetryableError("RESULT_INVALID: the result cannot be stored as JSON");
    }
    if (Buffer.byteLength(text) > this.#options.resultLimitBytes) {
      throw new NonRetryableError("RESULT_TOO_LARGE: store the result and return a pointer to it");
    }
    return text;
  }

  #outcomeOfThrown(
    job: ClaimedJob,
    error: unknown,
    { cause }: AbortSource,
    definition: Definition | undefined,
  ): Outcome {
    if (cause === "cancelled") return { kind: "cancelled" };
    if (cause === "stopping") return { kind: "released" };
    const { log, random, retryPolicy = defaultRetryPolicy } = this.#options;
    const { id, type, correlationId } = job;
    return outcomeOfFailure(job, tameError(error), {
      policy: definition?.retry ?? retryPolicy,
      classifier: definition?.classify,
      random: random(),
      failedProbe: takeFailedProbe(error),
      onFault: (fault) =>
        log
          .child({ job: id, type, correlationId })
          .error({ err: tameError(fault) }, "retry rules failed"),
    });
  }
}

function call(
  handler: Handler<unknown, unknown>,
  context: RunContext,
  abort: AbortSource,
  maxRuntimeMs: number | undefined,
): unknown {
  return maxRuntimeMs === undefined
    ? handler(context)
    : within(maxRuntimeMs, abort, async () => handler(context));
}

/**
 * A platform is not to blame for what fails once we have given up; for taking too long it is. A job can
 * wait until PostgreSQL answers: it needs that to end anyway.
 */
const callOptions = (definition: Definition, abort: AbortSource): BreakerRunOptions => ({
  classify: definition.classify,
  whenUnknown: "refuse",
  signal: {
    get aborted() {
      return abort.cause !== null && abort.cause !== "max_runtime";
    },
  },
});

function lift(job: ClaimedJob, definition: Definition | undefined): unknown {
  const { payload } = job;
  const { payloadVersion, upcasters } = definition ?? {};
  if (payloadVersion === undefined && upcasters === undefined) return payload;
  const from = job.meta.payloadVersion ?? versionOf(payload);
  const lifted = upcast(payload, {
    ...(typeof from === "string" ? { from } : {}),
    to: payloadVersion ?? defaultPayloadVersion,
    upcasters: upcasters ?? {},
  });
  if (!lifted.ok) throw new NonRetryableError(`${lifted.problem.code}: ${lifted.problem.message}`);
  return lifted.payload;
}

async function validate(
  payload: unknown,
  schema: NonNullable<Definition["schema"]>,
): Promise<unknown> {
  const result = await schema["~standard"].validate(payload);
  if (result.issues !== undefined) {
    throw new NonRetryableError(`PAYLOAD_INVALID: ${describeIssues(result.issues)}`);
  }
  return result.value;
}

/** JSON.stringify writes NUL and lone surrogates as escapes; PostgreSQL can read neither back. */
const unstorable = /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/i;

const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === "object" &&
  value !== null &&
  "then" in value &&
  typeof value.then === "function";

/** A handler that ignores its signal is left behind; its token decides nothing any more. */
async function within<T>(ms: number, abort: AbortSource, run: () => Promise<T>): Promise<T> {
  const startedAt = performance.now();
  const tooLong = () => {
    abort.abort("max_runtime");
    return new MillraceError("MAX_RUNTIME_EXCEEDED", `The handler ran longer than ${ms} ms.`);
  };
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(tooLong()), ms);
  });
  try {
    const result = await Promise.race([run(), late]);
    // One that blocked its process let no timer through.
    if (performance.now() - startedAt > ms) throw tooLong();
    return result;
  } finally {
    clearTimeout(timer);
  }
}

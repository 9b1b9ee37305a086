// From a definition, a payload and options to what is sent. What the in-process client refuses is refused
// here, as far as one can know without the service's settings; the service checks all of it again.

import { envelopeFields } from "../../domain/categories.ts";
import { checkOptions, type Known, knownNames } from "../../domain/check-options.ts";
import { MillraceError } from "../../domain/errors.ts";
import { checkFields } from "../../domain/payload-fields.ts";
import { type PayloadProblem, payloadError, violationProblem } from "../../domain/payload-rules.ts";
import { defaultShapeLimits, survey } from "../../domain/payload-shape.ts";
import { checkName, checkNumber, type JobDefinition } from "../../worker/job-definition.ts";
import { describeIssues, judgedBy, pathOf } from "../../worker/validate.ts";
import { withRules } from "../job-rules.ts";
import type { EnqueueOptions } from "../new-job.ts";

export type RemoteEnqueueOptions = Omit<EnqueueOptions, "tx">;

type Definition = JobDefinition<unknown, unknown, unknown>;
type Wire = Record<string, unknown>;

const known = knownNames({
  ...{ tenant: true, key: true, reference: true, correlationId: true, priority: true },
  ...{ delayMs: true, expiresInMs: true, maxAttempts: true, orderingKey: true, limitKey: true },
} satisfies Known<RemoteEnqueueOptions>);

const longest = 100 * 365 * 86_400_000;

/** With an idempotency key of its own if the caller gave none: saying it twice gives one job. */
export async function newRemoteJob(
  definition: Definition,
  given: unknown,
  options: RemoteEnqueueOptions,
  tenant: string | undefined,
): Promise<Wire> {
  checkCall(definition, options);
  const payload = given === undefined ? null : given;
  const wanted = withRules(definition, payload, options);
  checkWanted(wanted);
  checkPayload(definition, payload);
  await checkSchema(definition, payload);
  const named = {
    tenant_id: wanted.tenant ?? tenant,
    idempotency_key: wanted.key ?? envelopeKey(definition, payload) ?? crypto.randomUUID(),
    correlation_id: wanted.correlationId,
    reference: wanted.reference,
    priority: wanted.priority ?? definition.priority,
    category: definition.category,
    labels: definition.labels,
    ordering_key: wanted.orderingKey,
    limit_key: wanted.limitKey,
    delay_ms: wanted.delayMs,
    expires_in_ms: wanted.expiresInMs ?? definition.expiresInMs,
    max_attempts: wanted.maxAttempts ?? definition.maxAttempts,
  };
  const said = Object.entries(named).filter(([, value]) => value !== undefined);
  return { type: definition.type, queue: definition.queue, payload, ...Object.fromEntries(said) };
}

function checkCall(definition: Definition, options: RemoteEnqueueOptions): void {
  if (typeof definition?.type !== "string" || typeof definition.queue !== "string")
    throw new MillraceError("OPTION_INVALID", "What is enqueued must be made by defineJob.");
  if (typeof options === "object" && options !== null && "tx" in options)
    throw new MillraceError(
      "OPTION_INVALID",
      "Over HTTP there is no tx: no transaction is shared.",
    );
  checkOptions("an enqueue's options", options, known);
}

const names = [
  ...["tenant", "key", "reference", "correlationId", "orderingKey", "limitKey"],
] as readonly (keyof RemoteEnqueueOptions)[];

function checkWanted(options: RemoteEnqueueOptions): void {
  for (const name of names) if (options[name] !== undefined) checkName(name, options[name]);
  if (options.orderingKey !== undefined && options.limitKey !== undefined)
    throw new MillraceError("OPTION_INVALID", "A job has an orderingKey or a limitKey, not both.");
  checkNumber("delayMs", options.delayMs, 0, longest);
  checkNumber("expiresInMs", options.expiresInMs, 1, longest);
  checkNumber("maxAttempts", options.maxAttempts, 1, 1000);
}

/** Sizes and categories are the service's to know; what JSON would change on the way is not. */
const limits = {
  ...defaultShapeLimits,
  ...{ maxKeys: Number.POSITIVE_INFINITY, maxStringLength: Number.POSITIVE_INFINITY },
};

function checkPayload({ additionalRequired }: Definition, payload: unknown): void {
  const problems: PayloadProblem[] = [];
  checkFields(payload, { additionalRequired }, problems);
  for (const violation of survey(payload, { limits }).found)
    problems.push(violationProblem(violation, { limitBytes: limits.maxBytes }));
  if (problems.length > 0) throw payloadError(problems);
}

/** The payload as the schema sees it must be valid; what is sent is what was given. */
async function checkSchema({ schema }: Definition, payload: unknown): Promise<void> {
  if (schema === undefined) return;
  const { issues } = await judgedBy(schema, payload);
  if (issues === undefined) return;
  const message = `The payload is not valid: ${describeIssues(issues)}`;
  const problems = issues.map((issue) => ({
    ...{ code: "schema", path: pathOf(issue), message: issue.message },
  }));
  throw new MillraceError("PAYLOAD_INVALID", message, { details: { problems } });
}

/** A governed job says itself under which key it is known. */
function envelopeKey({ category }: Definition, payload: unknown): string | undefined {
  if (typeof payload !== "object" || payload === null) return undefined;
  const own = payload as Readonly<Record<string, unknown>>;
  const isEnvelope = envelopeFields.every((field) => Object.hasOwn(own, field));
  if (category === undefined && !isEnvelope) return undefined;
  const key = own.idempotency_key;
  return typeof key === "string" || typeof key === "number" ? String(key) : undefined;
}

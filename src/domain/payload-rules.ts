// What may be in a payload. Every rule is checked and every problem is told at once.

import { envelopeFields } from "./categories.ts";
import { checkEnvelope, checkFields, type FieldOptions } from "./payload-fields.ts";
import { type PayloadProblem, payloadError, payloadProblem } from "./payload-problems.ts";
import { defaultShapeLimits, inspect, type Violation } from "./payload-shape.ts";
import { defaultPayloadVersion } from "./payload-version.ts";

export { type PayloadProblem, payloadError } from "./payload-problems.ts";

export interface PayloadLimits {
  readonly warnBytes: number;
  readonly limitBytes: number;
  readonly maxDepth: number;
  readonly maxKeys: number;
}

const defaultPayloadLimits: PayloadLimits = Object.freeze({
  warnBytes: 10 * 1024,
  limitBytes: 256 * 1024,
  maxDepth: defaultShapeLimits.maxDepth,
  maxKeys: defaultShapeLimits.maxKeys,
});

export interface PayloadOptions extends FieldOptions {
  readonly limits?: Partial<PayloadLimits> | undefined;
}

export interface PayloadCheck {
  readonly ok: boolean;
  readonly errors: readonly PayloadProblem[];
  readonly warnings: readonly PayloadProblem[];
  /** Of the JSON text in UTF-8; 0 when the payload has none. */
  readonly sizeBytes: number;
}

export function validatePayload(payload: unknown, options: PayloadOptions = {}): PayloadCheck {
  return checkPayload(payload, toJson(payload), options);
}

/**
 * The same for a payload whose JSON text exists already. `json` is what `JSON.stringify(payload)`
 * returned, or undefined when it threw.
 */
export function checkPayload(
  payload: unknown,
  json: string | undefined,
  options: PayloadOptions = {},
): PayloadCheck {
  const limits = withDefaults(options.limits);
  const sizeBytes = json === undefined ? 0 : Buffer.byteLength(json);
  const errors: PayloadProblem[] = [];
  const warnings: PayloadProblem[] = [];
  if (sizeBytes > limits.limitBytes) {
    errors.push(payloadProblem("too_large", "$", `${sizeBytes} of ${limits.limitBytes} bytes`));
  } else if (sizeBytes > limits.warnBytes) {
    warnings.push(payloadProblem("large", "$", `${sizeBytes} bytes`));
  }
  checkFields(payload, options, errors);
  checkContent(payload, json, sizeBytes, limits, errors);
  return { ok: errors.length === 0, errors, warnings, sizeBytes };
}

/** Throws PAYLOAD_INVALID or PAYLOAD_TOO_LARGE with every problem in `details.problems`. */
export function assertPayload(payload: unknown, options: PayloadOptions = {}): PayloadCheck {
  const check = validatePayload(payload, options);
  if (!check.ok) throw payloadError(check.errors);
  return check;
}

export interface EnvelopeOptions extends PayloadOptions {
  readonly tenantId: string;
  readonly references?: Readonly<Record<string, string | number>> | undefined;
  /** A new UUID when left out. */
  readonly correlationId?: string | undefined;
  /** A new id when left out: then the job is not protected against being enqueued twice. */
  readonly idempotencyKey?: string | undefined;
  readonly payloadVersion?: string | undefined;
  readonly data?: unknown;
  /** Makes a UUID. */
  readonly newId: () => string;
}

export interface Envelope {
  readonly tenant_id: string;
  readonly correlation_id: string;
  readonly idempotency_key: string;
  readonly payload_version: string;
  readonly data?: unknown;
  readonly [reference: string]: unknown;
}

const reserved = new Set<string>([...envelopeFields, "payload_version", "data"]);

/** Throws PAYLOAD_INVALID with every problem in `details.problems` when it would not be valid. */
export function createEnvelope(options: EnvelopeOptions): Envelope {
  const references = options.references ?? {};
  const envelope: Envelope = {
    ...references,
    tenant_id: options.tenantId,
    correlation_id: options.correlationId ?? options.newId(),
    idempotency_key: options.idempotencyKey ?? options.newId(),
    payload_version: options.payloadVersion ?? defaultPayloadVersion,
    ...(options.data === undefined ? {} : { data: options.data }),
  };
  const problems = Object.keys(references)
    .filter((name) => reserved.has(name))
    .map((name) => payloadProblem("reserved_field", `$.${name}`));
  // With a category the rules check these fields; an envelope has them without one too.
  if (options.category === undefined) checkEnvelope(envelope, problems);
  problems.push(...validatePayload(envelope, options).errors);
  if (problems.length > 0) throw payloadError(problems);
  return envelope;
}

function toJson(payload: unknown): string | undefined {
  try {
    return JSON.stringify(payload);
  } catch {
    return undefined;
  }
}

function withDefaults(limits: Partial<PayloadLimits> | undefined): PayloadLimits {
  return limits === undefined ? defaultPayloadLimits : { ...defaultPayloadLimits, ...limits };
}

// JSON.stringify writes both as escapes, so one look at the text spares a look at every string.
const suspiciousEscape = /\\u(?:0000|d[89a-f])/i;

// Far over the limit the payload is refused anyway; reading all of it would only cost time.
const inspectedAnyway = 1024 * 1024;

function checkContent(
  payload: unknown,
  json: string | undefined,
  sizeBytes: number,
  limits: PayloadLimits,
  errors: PayloadProblem[],
): void {
  if (sizeBytes > Math.max(limits.limitBytes, inspectedAnyway)) return;
  const violations = inspect(payload, {
    limits: {
      maxDepth: limits.maxDepth,
      maxKeys: limits.maxKeys,
      maxValues: defaultShapeLimits.maxValues,
      maxStringLength: limits.limitBytes,
    },
    checkCharacters: json === undefined || suspiciousEscape.test(json),
  });
  for (const violation of violations) errors.push(violationProblem(violation));
  if (json === undefined && violations.length === 0) {
    errors.push(payloadProblem("not_json", "$", "it could not be serialized"));
  }
}

const withoutDetail = new Set<string>(["too_deep", "too_many_keys", "too_many_values"]);

function violationProblem({ rule, path, kind }: Violation): PayloadProblem {
  return payloadProblem(rule, path, withoutDetail.has(rule) ? undefined : kind);
}

// What may be in a payload. Every rule is checked and every problem is told at once.

import { envelopeFields } from "./categories.ts";
import { checkEnvelope, checkFields } from "./payload-fields.ts";
import {
  checkEnvelopeOptions,
  checkPayloadOptions,
  type EnvelopeOptions,
  type PayloadLimits,
  type PayloadOptions,
} from "./payload-options.ts";
import { type PayloadProblem, payloadError, payloadProblem } from "./payload-problems.ts";
import {
  defaultShapeLimits,
  inspect,
  type ShapeLimits,
  survey,
  type Violation,
} from "./payload-shape.ts";
import { defaultPayloadVersion } from "./payload-version.ts";

export type { PayloadLimits, PayloadOptions } from "./payload-options.ts";
export { type PayloadProblem, payloadError } from "./payload-problems.ts";

const defaultPayloadLimits: PayloadLimits = Object.freeze({
  warnBytes: 10 * 1024,
  limitBytes: 256 * 1024,
  maxDepth: defaultShapeLimits.maxDepth,
  maxKeys: defaultShapeLimits.maxKeys,
});

export interface PayloadCheck {
  readonly ok: boolean;
  readonly errors: readonly PayloadProblem[];
  readonly warnings: readonly PayloadProblem[];
  /** Of the JSON text in UTF-8; 0 when the payload has none, or is far too large to be written. */
  readonly sizeBytes: number;
}

const none: readonly PayloadProblem[] = Object.freeze([]);

export function validatePayload(payload: unknown, options: PayloadOptions = {}): PayloadCheck {
  checkPayloadOptions(options);
  return writePayload(payload, options).check;
}

/**
 * The check, and the JSON text where there is one. Counting comes before writing: a payload that repeats
 * its parts may be small in memory and endless as text.
 */
export function writePayload(payload: unknown, options: PayloadOptions = {}): Written {
  try {
    return checkAndWrite(payload, options);
  } catch {
    // A getter or a proxy of the caller's.
    const errors = [payloadProblem("not_json", "$", "it could not be read")];
    return { check: { ok: false, errors, warnings: none, sizeBytes: 0 }, json: undefined };
  }
}

interface Written {
  readonly check: PayloadCheck;
  readonly json: string | undefined;
}

function checkAndWrite(payload: unknown, options: PayloadOptions): Written {
  const { limits, shape } = limitsOf(options.limits);
  const { found, complete } = survey(payload, { limits: shape, checkCharacters: false });
  const json = complete ? toJson(payload) : undefined;
  const sizeBytes = json === undefined ? 0 : Buffer.byteLength(json);
  const isShort = sizeBytes > 0 && sizeBytes <= Math.min(limits.warnBytes, limits.limitBytes);
  const hasRules = options.category !== undefined || options.additionalRequired !== undefined;
  // Most payloads: nothing was found, and nothing else is asked of them.
  if (json !== undefined && isShort && found.length === 0 && !hasRules && !json.includes("\\u"))
    return { check: { ok: true, errors: none, warnings: none, sizeBytes }, json };
  const errors: PayloadProblem[] = [];
  const warnings: PayloadProblem[] = [];
  if (sizeBytes > limits.limitBytes) {
    errors.push(payloadProblem("too_large", "$", `${sizeBytes} of ${limits.limitBytes} bytes`));
  } else if (sizeBytes > limits.warnBytes) {
    warnings.push(payloadProblem("large", "$", `${sizeBytes} bytes`));
  }
  checkFields(payload, options, errors);
  const again = json === undefined || hasSuspiciousEscape(json);
  const violations = again ? inspect(payload, { limits: shape }) : found;
  for (const violation of violations) errors.push(violationProblem(violation, limits));
  if (json === undefined && errors.length === 0) {
    errors.push(payloadProblem("not_json", "$", "it could not be serialized"));
  }
  return { check: { ok: errors.length === 0, errors, warnings, sizeBytes }, json };
}

/** Throws PAYLOAD_INVALID or PAYLOAD_TOO_LARGE with every problem in `details.problems`. */
export function assertPayload(payload: unknown, options: PayloadOptions = {}): PayloadCheck {
  const check = validatePayload(payload, options);
  if (!check.ok) throw payloadError(check.errors);
  return check;
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
  checkEnvelopeOptions(options);
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
  problems.push(...writePayload(envelope, options).check.errors);
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

interface Limits {
  readonly limits: PayloadLimits;
  readonly shape: ShapeLimits;
}

const known = new WeakMap<Partial<PayloadLimits>, Limits>();

/** Worked out once for each: this is on the way of every job. */
function limitsOf(given: Partial<PayloadLimits> = defaultPayloadLimits): Limits {
  const found = known.get(given);
  if (found !== undefined) return found;
  const limits = { ...defaultPayloadLimits, ...given };
  const made = { limits, shape: shapeLimits(limits) };
  if (Object.isFrozen(given)) known.set(given, made);
  return made;
}

// JSON.stringify writes both as escapes, so one look at the text spares a look at every string.
const suspiciousEscape = /\\u(?:0000|d[89a-f])/i;
const hasSuspiciousEscape = (json: string) => json.includes("\\u") && suspiciousEscape.test(json);

// Far over the limit the payload is refused anyway; reading all of it would only cost time.
const inspectedAnyway = 1024 * 1024;

const shapeLimits = ({ maxDepth, maxKeys, limitBytes }: PayloadLimits): ShapeLimits => ({
  maxDepth,
  maxKeys,
  maxValues: defaultShapeLimits.maxValues,
  maxStringLength: limitBytes,
  maxBytes: Math.max(limitBytes, inspectedAnyway),
});

const withoutDetail = new Set<string>(["too_deep", "too_many_keys", "too_many_values"]);

export function violationProblem(
  { rule, path, kind }: Violation,
  limits: Pick<PayloadLimits, "limitBytes">,
): PayloadProblem {
  if (rule === "too_large")
    return payloadProblem(rule, path, `far more than ${limits.limitBytes} bytes`);
  return payloadProblem(rule, path, withoutDetail.has(rule) ? undefined : kind);
}

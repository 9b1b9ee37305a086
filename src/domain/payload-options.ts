// What may be said about a payload's rules. A slip must be refused: it would switch the rules off, unseen.

import { checkFunction, checkOptions, type Known, knownNames } from "./check-options.ts";
import { MillraceError } from "./errors.ts";
import type { FieldOptions } from "./payload-fields.ts";
import { whole } from "./setting-values.ts";

export interface PayloadLimits {
  readonly warnBytes: number;
  readonly limitBytes: number;
  readonly maxDepth: number;
  readonly maxKeys: number;
}

export interface PayloadOptions extends FieldOptions {
  readonly limits?: Partial<PayloadLimits> | undefined;
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

const ofLimits = knownNames({
  ...{ warnBytes: true, limitBytes: true, maxDepth: true, maxKeys: true },
} satisfies Known<PayloadLimits>);

const ofPayload = {
  ...{ category: true, additionalRequired: true, categories: true, limits: true },
} satisfies Known<PayloadOptions>;

const ofEnvelope = {
  ...{ ...ofPayload, tenantId: true, references: true, correlationId: true, idempotencyKey: true },
  ...{ payloadVersion: true, data: true, newId: true },
} satisfies Known<EnvelopeOptions>;

const payloadNames = knownNames(ofPayload);
const envelopeNames = knownNames(ofEnvelope);

/** `what` is how the caller names them. */
export function checkPayloadLimits(what: string, limits: Partial<PayloadLimits>): void {
  checkOptions(what, limits, ofLimits);
  for (const [name, value] of Object.entries(limits)) whole(`${what}.${name}`, value, 1);
}

export function checkPayloadOptions(options: PayloadOptions): void {
  checkOptions("validatePayload", options, payloadNames);
  checkValues(options);
}

export function checkEnvelopeOptions(options: EnvelopeOptions): void {
  checkOptions("createEnvelope", options, envelopeNames);
  checkValues(options);
  const { references, correlationId, idempotencyKey, newId } = options;
  if (references !== undefined)
    checkOptions("references", references, new Set(Object.keys(Object(references))));
  checkFunction("newId", newId);
  const isNeeded = (correlationId ?? null) === null || (idempotencyKey ?? null) === null;
  if (isNeeded && newId === undefined)
    throw invalid("newId must be a function that makes a UUID, such as node:crypto's randomUUID.");
}

function checkValues({ category, additionalRequired, categories, limits }: PayloadOptions): void {
  if (category !== undefined && typeof category !== "string")
    throw invalid("category must be the name of one.");
  checkFieldNames(additionalRequired);
  if (categories !== undefined && typeof categories?.get !== "function")
    throw invalid("categories must be those of a Millrace's config.");
  if (limits !== undefined) checkPayloadLimits("limits", limits);
}

/** A text would be taken for a list of its letters. */
export function checkFieldNames(additionalRequired: unknown): void {
  if (additionalRequired === undefined) return;
  const isList = Array.isArray(additionalRequired);
  if (isList && additionalRequired.every((one) => typeof one === "string")) return;
  throw invalid("additionalRequired must be a list of field names.");
}

const invalid = (message: string) => new MillraceError("OPTION_INVALID", message);

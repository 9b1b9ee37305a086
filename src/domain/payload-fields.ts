// The fields that a payload must have: the envelope's and the references of its category.

import { type Categories, createCategories, envelopeFields } from "./categories.ts";
import { type PayloadProblem, payloadProblem } from "./payload-problems.ts";
import { isVersion } from "./payload-version.ts";

export interface FieldOptions {
  readonly category?: string | undefined;
  /** Fields that must be there besides the category's. */
  readonly additionalRequired?: readonly string[] | undefined;
  readonly categories?: Categories | undefined;
}

const builtIn = createCategories();

export function checkFields(
  payload: unknown,
  options: FieldOptions,
  errors: PayloadProblem[],
): void {
  const { category: name, additionalRequired = [] } = options;
  if (name === undefined && additionalRequired.length === 0) return;
  const category = name === undefined ? undefined : (options.categories ?? builtIn).get(name);
  if (name !== undefined && category === undefined) {
    errors.push(payloadProblem("unknown_category", "$"));
  }
  if (!isRecord(payload)) {
    errors.push(payloadProblem("not_an_object", "$"));
    return;
  }
  if (name !== undefined) checkEnvelope(payload, errors);
  const required = new Set([...(category?.references ?? []), ...additionalRequired]);
  for (const field of required) {
    if (name === undefined || !isEnvelopeField(field)) requireField(payload, field, errors);
  }
}

export function checkEnvelope(
  payload: Readonly<Record<string, unknown>>,
  errors: PayloadProblem[],
): void {
  for (const field of envelopeFields) {
    const present = requireField(payload, field, errors);
    if (field === "correlation_id" && present && !isUuid(payload[field])) {
      errors.push(payloadProblem("correlation_id_not_uuid", "$.correlation_id"));
    }
  }
  if (Object.hasOwn(payload, "payload_version") && !isVersion(payload.payload_version)) {
    errors.push(payloadProblem("payload_version_invalid", "$.payload_version"));
  }
}

function isEnvelopeField(field: string): boolean {
  return (envelopeFields as readonly string[]).includes(field);
}

function requireField(
  payload: Readonly<Record<string, unknown>>,
  field: string,
  errors: PayloadProblem[],
): boolean {
  const value = Object.hasOwn(payload, field) ? payload[field] : undefined;
  const path = `$.${field}`;
  if (value === undefined || value === null) errors.push(payloadProblem("required_missing", path));
  else if (typeof value === "string" && value.trim() === "") {
    errors.push(payloadProblem("required_empty", path));
  } else if (typeof value === "string" || Number.isFinite(value)) return true;
  else errors.push(payloadProblem("required_invalid", path));
  return false;
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

function isUuid(value: unknown): boolean {
  return typeof value === "string" && uuid.test(value);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

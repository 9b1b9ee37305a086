// The problem codes of payloads and their words. Codes are stable; messages name paths and kinds,
// never values.

import { MillraceError } from "./errors.ts";
import type { Violation } from "./payload-shape.ts";

export type PayloadProblemCode =
  | Violation["rule"]
  | "required_missing"
  | "required_empty"
  | "required_invalid"
  | "correlation_id_not_uuid"
  | "payload_version_invalid"
  | "payload_version_contradicted"
  | "unknown_category"
  | "not_an_object"
  | "reserved_field"
  | "large";

export interface PayloadProblem {
  readonly code: PayloadProblemCode;
  readonly path: string;
  readonly message: string;
}

const words: Readonly<Record<PayloadProblemCode, string>> = {
  required_missing: "is required and missing",
  required_empty: "is required and empty",
  required_invalid: "must be a non-empty string or a number",
  correlation_id_not_uuid: "must be a UUID",
  payload_version_invalid: "must be a version such as 1.0",
  payload_version_contradicted: "is not the payloadVersion of the job's definition",
  unknown_category: "belongs to a category that does not exist",
  not_an_object: "must be an object, because fields are required in it",
  reserved_field: "is a field of the envelope and cannot be a reference",
  too_large: "is larger than the limit",
  large: "is large; refer to objects by id instead",
  too_deep: "is nested too deeply, or refers to itself",
  too_many_keys: "has too many keys",
  too_many_values: "has too many values",
  string_too_long: "is longer than the payload limit",
  forbidden_key: "has a name that is reserved by JavaScript",
  null_character: "contains the character U+0000, which PostgreSQL cannot store",
  lone_surrogate: "contains half of a surrogate pair, which is not valid Unicode",
  non_finite_number: "is not a finite number",
  not_json: "cannot be stored as JSON",
  sensitive_key: "has a name that stands for a secret",
  sensitive_value: "looks like a secret",
  embedded_content: "embeds content; store it and refer to it by id",
};

export function payloadProblem(
  code: PayloadProblemCode,
  path: string,
  detail?: string,
): PayloadProblem {
  const message = `${path} ${words[code]}${detail === undefined ? "" : ` (${detail})`}.`;
  return { code, path, message };
}

const shownInMessage = 5;
const sizeCodes = new Set<PayloadProblemCode>(["too_large", "string_too_long"]);

/** The error to throw for these problems; `details.problems` has all of them. */
export function payloadError(problems: readonly PayloadProblem[]): MillraceError {
  const onlySize = problems.length > 0 && problems.every(({ code }) => sizeCodes.has(code));
  const shown = problems.slice(0, shownInMessage).map(({ message }) => message);
  const more = problems.length - shown.length;
  const message = `The payload is refused: ${shown.join(" ")}${more > 0 ? ` And ${more} more.` : ""}`;
  return new MillraceError(onlySize ? "PAYLOAD_TOO_LARGE" : "PAYLOAD_INVALID", message, {
    details: { problems },
  });
}

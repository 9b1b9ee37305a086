import { inspect, type SensitiveRule } from "./payload-shape.ts";

export interface SensitiveFinding {
  /** Where it stands, such as `$.user.api_key`; the value is never part of it. */
  readonly path: string;
  /** What it looks like, such as `jwt`, `password` or `base64_blob`. */
  readonly kind: string;
  readonly rule: SensitiveRule;
}

/** Secrets and embedded content in a payload, by key name and by the shape of values. */
export function findSensitive(value: unknown): SensitiveFinding[] {
  return inspect(value, { checkCharacters: false }).flatMap(({ rule, path, kind }) =>
    isSensitive(rule) ? [{ path, kind, rule }] : [],
  );
}

function isSensitive(rule: string): rule is SensitiveRule {
  return rule === "sensitive_key" || rule === "sensitive_value" || rule === "embedded_content";
}

// Labels: fields of a payload that jobs can be found by. A label is named by the path of its field.

import { createHash } from "node:crypto";
import { MillraceError } from "../domain/errors.ts";
import type { Label } from "../store/label.ts";

const longestValue = 200;

/** A label as `name:value`; the name has no colon. */
export function parseLabel(text: string): Label {
  const colon = text.indexOf(":");
  if (colon < 1 || colon === text.length - 1)
    throw new MillraceError("REQUEST_INVALID", "query.label: must be name:value");
  return { name: text.slice(0, colon), value: storedValue(text.slice(colon + 1)) };
}

/** What the payload has at these paths. Only texts, numbers and booleans can be searched for. */
export function labelsOf(
  paths: readonly string[] | undefined,
  payload: unknown,
): readonly Label[] | undefined {
  if (paths === undefined) return undefined;
  const labels = paths.flatMap((name) => {
    const found = valueAt(payload, name);
    const isScalar = ["string", "number", "boolean"].includes(typeof found);
    return isScalar && found !== "" ? [{ name, value: storedValue(String(found)) }] : [];
  });
  return labels.length === 0 ? undefined : labels;
}

function valueAt(payload: unknown, path: string): unknown {
  let value = payload;
  for (const step of path.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, step))
      return undefined;
    value = (value as Record<string, unknown>)[step];
  }
  return value;
}

/** Short, and something that PostgreSQL can hold as text. */
function storedValue(text: string): string {
  const isPlain = text.length <= longestValue && !text.includes("\u0000") && text.isWellFormed();
  return isPlain ? text : `sha256:${createHash("sha256").update(text).digest("hex")}`;
}

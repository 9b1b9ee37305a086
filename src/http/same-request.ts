// What makes two requests under one idempotency key the same: everything that is asked for, whichever way
// its keys are ordered. Where a request comes from (its correlation id) is not asked for, and a field that
// is left out is not the same as one that is given.

import { createHash } from "node:crypto";

/** JSON with sorted keys. */
const canonical = (value: unknown): string =>
  JSON.stringify(value, (_, inner) =>
    typeof inner === "object" && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );

type Fields = Readonly<Record<string, unknown>>;

const isAsked = ([name, value]: [string, unknown]): boolean =>
  value !== undefined && name !== "idempotency_key" && name !== "correlation_id";

/** Of a job or an item, beyond what the client compares by itself; undefined: nothing. */
export function asksOf(more: Fields): string | undefined {
  const asked = Object.entries(more).filter(isAsked);
  return asked.length === 0 ? undefined : canonical(Object.fromEntries(asked));
}

/** Of all jobs of a request together: with one more, one less or another one it is another request. */
export function asksOfAll(jobs: readonly Fields[]): string {
  const hash = createHash("sha256");
  for (const job of jobs) hash.update(`${asksOf(job) ?? ""}\n`);
  return `all:${hash.digest("hex")}`;
}

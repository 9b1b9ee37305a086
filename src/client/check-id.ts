import { type ErrorCode, MillraceError } from "../domain/errors.ts";

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const codes = { job: "JOB_NOT_FOUND", trigger: "TRIGGER_NOT_FOUND" } satisfies Record<
  string,
  ErrorCode
>;

/** What is no UUID names nothing that could be found. */
export function checkId(what: keyof typeof codes, id: string): void {
  if (typeof id !== "string" || !uuid.test(id))
    throw new MillraceError(codes[what], `A ${what} id is a UUID.`);
}

import type { StandardSchemaV1 } from "@standard-schema/spec";
import { MillraceError } from "../domain/errors.ts";

type Result = StandardSchemaV1.Result<unknown>;

/** What the schema says. One that throws, or says nothing, has not found the payload valid. */
export function judgedBy(schema: StandardSchemaV1, payload: unknown): Result | Promise<Result> {
  try {
    const result = schema["~standard"].validate(payload);
    return result instanceof Promise ? result.then(said).catch(refuse) : said(result);
  } catch (error) {
    return refuse(error);
  }
}

function said(result: Result | null | undefined): Result {
  if (isObject(result) && (result.issues === undefined || isIssues(result.issues))) return result;
  throw new TypeError("validate() of a Standard Schema answers with { value } or { issues }");
}

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;

const isIssues = (issues: unknown): boolean => Array.isArray(issues) && issues.every(isIssue);

const isIssue = (issue: Partial<StandardSchemaV1.Issue> | null): boolean =>
  isObject(issue) && typeof issue.message === "string" && isPath(issue.path ?? []);

const isPath = (path: unknown): boolean =>
  Array.isArray(path) && path.every((step) => step !== null);

function refuse(cause: unknown): never {
  const message = "The payload's schema could not judge it: its validate() failed.";
  throw new MillraceError("PAYLOAD_INVALID", message, { cause });
}

/** Paths and messages of schema issues; values stay out of it. */
export function describeIssues(issues: readonly StandardSchemaV1.Issue[]): string {
  return issues.map((issue) => `${pathOf(issue)}: ${issue.message}`).join("; ");
}

export function pathOf(issue: StandardSchemaV1.Issue): string {
  const steps = (issue.path ?? []).map((step) => (typeof step === "object" ? step.key : step));
  return ["$", ...steps.map(String)].join(".");
}

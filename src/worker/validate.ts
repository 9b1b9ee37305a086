import type { StandardSchemaV1 } from "@standard-schema/spec";

/** Paths and messages of schema issues; values stay out of it. */
export function describeIssues(issues: readonly StandardSchemaV1.Issue[]): string {
  return issues.map((issue) => `${pathOf(issue)}: ${issue.message}`).join("; ");
}

export function pathOf(issue: StandardSchemaV1.Issue): string {
  const steps = (issue.path ?? []).map((step) => (typeof step === "object" ? step.key : step));
  return ["$", ...steps.map(String)].join(".");
}

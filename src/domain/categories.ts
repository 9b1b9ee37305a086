// Governed classes of jobs. A job in a category carries the envelope fields and the category's
// references in its payload; `payload-rules.ts` checks that.

import { type ErrorCode, MillraceError } from "./errors.ts";
import { judgeKey } from "./sensitive-keys.ts";

export const envelopeFields = Object.freeze([
  "tenant_id",
  "correlation_id",
  "idempotency_key",
] as const);

export interface Category {
  readonly name: string;
  /** Job types that belong to the category by their name alone. */
  readonly jobTypes: readonly string[];
  /** Payload fields that must be there, besides the envelope's. */
  readonly references: readonly string[];
}

export interface CategoryOptions {
  readonly name: string;
  readonly jobTypes?: readonly string[];
  readonly references?: readonly string[];
}

export interface Categories {
  readonly all: readonly Category[];
  get(name: string): Category | undefined;
  categoryOf(jobType: string): Category | undefined;
  /** The name of the category of a job that says so or not: a listed type does not leave its own. */
  ofJob(jobType: string, said: string | undefined, code?: ErrorCode): string | undefined;
}

export const builtInCategories: readonly Category[] = Object.freeze([
  category("ingestion", ["email_ingestion_fetch", "email_ingestion_parse"], ["connection_id"]),
  category("sync", ["calendar_sync_pull", "calendar_sync_push"], ["connection_id"]),
  category("recurrence", ["recurrence_period_generate", "recurrence_work_create"]),
  category("orchestration", ["orchestration_step_execute"]),
  category("documents", ["document_scan", "document_classify"], ["document_id"]),
  category("notifications", ["notification_email_send", "notification_inapp_create"]),
  category("export", ["firm_export", "firm_purge"]),
  category("maintenance", ["session_expire", "data_archival"]),
]);

export function createCategories(userCategories: readonly CategoryOptions[] = []): Categories {
  if (!Array.isArray(userCategories) || !userCategories.every(isCategory)) {
    const message = "categories must be a list of { name, jobTypes, references }.";
    throw new MillraceError("OPTION_INVALID", message);
  }
  const own = userCategories.map(({ name, jobTypes, references }) =>
    category(name, jobTypes, references),
  );
  const all = [...builtInCategories, ...own];
  const problems = [...own.flatMap(nameProblems), ...duplicateProblems(all)];
  if (problems.length > 0) {
    const message = `The categories cannot be used: ${problems.map((p) => p.message).join(" ")}`;
    throw new MillraceError("OPTION_INVALID", message, { details: { problems } });
  }
  const byName = new Map(all.map((each) => [each.name, each]));
  const byType = new Map(all.flatMap((each) => each.jobTypes.map((type) => [type, each] as const)));
  return Object.freeze({
    all: Object.freeze(all),
    get: (name: string) => byName.get(name),
    categoryOf: (jobType: string) => byType.get(jobType),
    ofJob: (jobType, said, code = "OPTION_INVALID") => {
      const listed = byType.get(jobType)?.name;
      if (said === undefined || listed === undefined || said === listed) return said ?? listed;
      const message = `The type "${jobType}" belongs to the category "${listed}", not to "${said}".`;
      throw new MillraceError(code, message);
    },
  } satisfies Categories);
}

const isTexts = (value: unknown): boolean =>
  value === undefined || (Array.isArray(value) && value.every((one) => typeof one === "string"));

const isCategory = (value: CategoryOptions): boolean =>
  typeof value?.name === "string" && isTexts(value.jobTypes) && isTexts(value.references);

function category(
  name: string,
  jobTypes: readonly string[] = [],
  references: readonly string[] = [],
): Category {
  return Object.freeze({
    name,
    jobTypes: Object.freeze([...jobTypes]),
    references: Object.freeze([...references]),
  });
}

interface CategoryProblem {
  readonly code:
    | "category_name_invalid"
    | "job_type_invalid"
    | "reference_invalid"
    | "category_duplicate"
    | "job_type_duplicate";
  readonly message: string;
}

const validName = /^[a-z][a-z0-9_.-]{0,63}$/;
const validReference = /^[A-Za-z_][\w-]{0,63}$/;

function nameProblems({ name, jobTypes, references }: Category): CategoryProblem[] {
  const problems: CategoryProblem[] = [];
  if (!validName.test(name)) {
    const message = `The name "${name}" must be 1 to 64 of a-z, 0-9, "_", "." and "-", beginning with a letter.`;
    problems.push({ code: "category_name_invalid", message });
  }
  if (jobTypes.some((type) => type.trim() === "")) {
    problems.push({ code: "job_type_invalid", message: `A job type of "${name}" is empty.` });
  }
  for (const reference of references.filter((each) => !isUsableReference(each))) {
    const message = `The reference "${reference}" of "${name}" cannot be a payload field.`;
    problems.push({ code: "reference_invalid", message });
  }
  return problems;
}

// A reference under a secret's name could never pass the payload rules.
function isUsableReference(reference: string): boolean {
  const verdict = judgeKey(reference);
  const refused = verdict.secret ?? verdict.embedded ?? verdict.secretItself;
  return refused === undefined && validReference.test(reference) && !reserved.has(reference);
}

const reserved = new Set<string>([
  ...envelopeFields,
  "payload_version",
  "data",
  "__proto__",
  "constructor",
  "prototype",
]);

function duplicateProblems(all: readonly Category[]): CategoryProblem[] {
  const names = repeated(all.map((each) => each.name));
  const types = repeated(all.flatMap((each) => each.jobTypes));
  return [
    ...names.map((name): CategoryProblem => {
      return { code: "category_duplicate", message: `There are two categories "${name}".` };
    }),
    ...types.map((type): CategoryProblem => {
      return { code: "job_type_duplicate", message: `The job type "${type}" is listed twice.` };
    }),
  ];
}

function repeated(names: readonly string[]): string[] {
  return [...new Set(names.filter((name, i) => names.indexOf(name) !== i))];
}

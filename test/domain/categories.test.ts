import { describe, expect, test } from "vitest";
import { builtInCategories, createCategories } from "../../src/domain/categories.ts";
import { MillraceError } from "../../src/domain/errors.ts";

function codesThrownBy(run: () => unknown): string[] {
  try {
    run();
  } catch (error) {
    if (error instanceof MillraceError && error.code === "OPTION_INVALID") {
      return (error.details.problems as { code: string }[]).map(({ code }) => code);
    }
    throw error;
  }
  return [];
}

describe("built-in categories", () => {
  const expected: [string, string[], string[]][] = [
    ["ingestion", ["email_ingestion_fetch", "email_ingestion_parse"], ["connection_id"]],
    ["sync", ["calendar_sync_pull", "calendar_sync_push"], ["connection_id"]],
    ["recurrence", ["recurrence_period_generate", "recurrence_work_create"], []],
    ["orchestration", ["orchestration_step_execute"], []],
    ["documents", ["document_scan", "document_classify"], ["document_id"]],
    ["notifications", ["notification_email_send", "notification_inapp_create"], []],
    ["export", ["firm_export", "firm_purge"], []],
    ["maintenance", ["session_expire", "data_archival"], []],
  ];
  test.each(expected)("%s has its job types and references", (name, jobTypes, references) => {
    expect(createCategories().get(name)).toEqual({ name, jobTypes, references });
  });

  test("there are no others", () => {
    expect(builtInCategories.map(({ name }) => name)).toEqual(expected.map(([name]) => name));
  });

  test.each(expected)("%s is found by each of its job types", (name, jobTypes) => {
    for (const type of jobTypes) expect(createCategories().categoryOf(type)?.name).toBe(name);
  });

  test("an unknown name or job type has no category", () => {
    expect(createCategories().get("toString")).toBeUndefined();
    expect(createCategories().categoryOf("constructor")).toBeUndefined();
  });
});

describe("the category of a job", () => {
  const categories = createCategories([{ name: "billing", jobTypes: ["invoice_send"] }]);

  test("is that which lists its type, or else what it says", () => {
    expect(categories.ofJob("document_scan", undefined)).toBe("documents");
    expect(categories.ofJob("document_scan", "documents")).toBe("documents");
    expect(categories.ofJob("invoice_send", undefined)).toBe("billing");
    expect(categories.ofJob("thumbnail", "documents")).toBe("documents");
    expect(categories.ofJob("thumbnail", undefined)).toBeUndefined();
  });

  test.each([
    ["document_scan", "maintenance"],
    ["document_scan", "billing"],
    ["invoice_send", "documents"],
    ["invoice_send", "nothing"],
  ])("of the listed type %s is never %s", (type, said) => {
    expect(() => categories.ofJob(type, said)).toThrowError(/belongs to the category/);
  });
});

describe("own categories", () => {
  const billing = { name: "billing", jobTypes: ["invoice_send"], references: ["invoice_id"] };

  test("stand beside the built-in ones", () => {
    const categories = createCategories([billing, { name: "misc" }]);
    expect(categories.get("billing")).toEqual(billing);
    expect(categories.categoryOf("invoice_send")).toBe(categories.get("billing"));
    expect(categories.get("misc")).toEqual({ name: "misc", jobTypes: [], references: [] });
    expect(categories.all).toHaveLength(10);
  });

  test("are frozen and do not follow later changes of what was given", () => {
    const references = ["invoice_id"];
    const categories = createCategories([{ name: "billing", references }]);
    references.push("other_id");
    expect(categories.get("billing")?.references).toEqual(["invoice_id"]);
    expect(Object.isFrozen(categories)).toBe(true);
    expect(Object.isFrozen(categories.all)).toBe(true);
    expect(Object.isFrozen(categories.get("billing")?.references)).toBe(true);
  });

  const refused: [string, Parameters<typeof createCategories>[0], string[]][] = [
    ["a built-in name", [{ name: "sync" }], ["category_duplicate"]],
    ["a name twice", [{ name: "a" }, { name: "a" }], ["category_duplicate"]],
    ["a built-in job type", [{ name: "a", jobTypes: ["document_scan"] }], ["job_type_duplicate"]],
    ["a job type twice", [{ name: "a", jobTypes: ["x", "x"] }], ["job_type_duplicate"]],
    ["an empty name", [{ name: "" }], ["category_name_invalid"]],
    ["a name with a blank", [{ name: "my jobs" }], ["category_name_invalid"]],
    ["an empty job type", [{ name: "a", jobTypes: [" "] }], ["job_type_invalid"]],
    ["an empty reference", [{ name: "a", references: [""] }], ["reference_invalid"]],
    ["an envelope field", [{ name: "a", references: ["tenant_id"] }], ["reference_invalid"]],
    ["a secret as reference", [{ name: "a", references: ["api_key"] }], ["reference_invalid"]],
    ["content as reference", [{ name: "a", references: ["email_body"] }], ["reference_invalid"]],
    ["a prototype key", [{ name: "a", references: ["__proto__"] }], ["reference_invalid"]],
    [
      "several things at once",
      [{ name: "sync", references: ["token"] }],
      ["reference_invalid", "category_duplicate"],
    ],
  ];
  test.each(refused)("%s is refused", (_, categories, codes) => {
    expect(codesThrownBy(() => createCategories(categories))).toEqual(codes);
  });
});

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createCategories } from "../../src/domain/categories.ts";
import { MillraceError } from "../../src/domain/errors.ts";
import {
  assertPayload,
  type PayloadOptions,
  validatePayload,
} from "../../src/domain/payload-rules.ts";

const id = "018f3b1e-7c2a-7def-8a1b-2c3d4e5f6a7b";
const envelope = { tenant_id: "acme", correlation_id: id, idempotency_key: "scan-1" };
const scan = { ...envelope, document_id: "d1" };

function errorsOf(payload: unknown, options?: PayloadOptions) {
  return validatePayload(payload, options).errors.map(({ code, path }) => `${code} ${path}`);
}

function thrownBy(run: () => unknown): MillraceError {
  try {
    run();
  } catch (error) {
    if (error instanceof MillraceError) return error;
  }
  throw new Error("no MillraceError was thrown");
}

function codesOf(error: MillraceError): string[] {
  return (error.details.problems as { code: string }[]).map(({ code }) => code);
}

describe("required fields", () => {
  test("a payload with all of them is valid", () => {
    const check = validatePayload(scan, { category: "documents" });
    expect(check).toEqual({
      ok: true,
      errors: [],
      warnings: [],
      sizeBytes: JSON.stringify(scan).length,
    });
  });

  test("every missing field is told at once", () => {
    expect(errorsOf({}, { category: "documents" })).toEqual([
      "required_missing $.tenant_id",
      "required_missing $.correlation_id",
      "required_missing $.idempotency_key",
      "required_missing $.document_id",
    ]);
  });

  const broken: [string, Record<string, unknown>, string][] = [
    ["null", { document_id: null }, "required_missing $.document_id"],
    ["undefined", { document_id: undefined }, "required_missing $.document_id"],
    ["empty", { document_id: "" }, "required_empty $.document_id"],
    ["blank", { tenant_id: "  " }, "required_empty $.tenant_id"],
    ["an object", { document_id: {} }, "required_invalid $.document_id"],
    ["a boolean", { idempotency_key: true }, "required_invalid $.idempotency_key"],
    ["no UUID", { correlation_id: "abc" }, "correlation_id_not_uuid $.correlation_id"],
    ["a number", { correlation_id: 5 }, "correlation_id_not_uuid $.correlation_id"],
    [
      "a version of its own",
      { payload_version: "v2" },
      "payload_version_invalid $.payload_version",
    ],
    ["a number as version", { payload_version: 1 }, "payload_version_invalid $.payload_version"],
  ];
  test.each(broken)("a field that is %s is refused", (_, change, problem) => {
    expect(errorsOf({ ...scan, ...change }, { category: "documents" })).toEqual([problem]);
  });

  test("a number is a reference too", () => {
    expect(errorsOf({ ...scan, document_id: 0 }, { category: "documents" })).toEqual([]);
  });

  test("an inherited field does not count", () => {
    const payload = Object.assign(Object.create(null), envelope);
    expect(errorsOf(payload, { category: "documents", additionalRequired: ["toString"] })).toEqual([
      "required_missing $.document_id",
      "required_missing $.toString",
    ]);
    expect(errorsOf({}, { additionalRequired: ["toString"] })).toEqual([
      "required_missing $.toString",
    ]);
  });

  test("additional fields are required with and without a category", () => {
    const options = { additionalRequired: ["period"] };
    expect(errorsOf(scan, { ...options, category: "documents" })).toEqual([
      "required_missing $.period",
    ]);
    expect(errorsOf({}, options)).toEqual(["required_missing $.period"]);
    expect(errorsOf({ period: "2026-07" }, options)).toEqual([]);
  });

  test("a field that is required twice is told once", () => {
    const options = { category: "documents", additionalRequired: ["tenant_id", "document_id"] };
    expect(errorsOf({}, options)).toHaveLength(4);
  });

  test("a category that does not exist is refused, with the envelope's problems", () => {
    expect(errorsOf({ ...envelope, tenant_id: "" }, { category: "nope" })).toEqual([
      "unknown_category $",
      "required_empty $.tenant_id",
    ]);
  });

  test("the user's own categories count", () => {
    const categories = createCategories([{ name: "billing", references: ["invoice_id"] }]);
    expect(errorsOf(envelope, { category: "billing", categories })).toEqual([
      "required_missing $.invoice_id",
    ]);
  });

  test.each([null, "text", 5, ["a"]])("with a category %j is not an object", (payload) => {
    expect(errorsOf(payload, { category: "documents" })).toEqual(["not_an_object $"]);
  });

  test.each([null, "text", 5, ["a"], {}])("without a category %j is allowed", (payload) => {
    expect(validatePayload(payload).ok).toBe(true);
  });
});

describe("size", () => {
  // The quotes count.
  const text = (bytes: number) => "x".repeat(bytes - 2);

  test("up to 10 KB there is no warning, over it there is one", () => {
    expect(validatePayload(text(10_240))).toMatchObject({ ok: true, warnings: [] });
    const over = validatePayload(text(10_241));
    expect(over).toMatchObject({ ok: true, warnings: [{ code: "large", path: "$" }] });
    expect(over.sizeBytes).toBe(10_241);
  });

  test("up to 256 KB a payload is accepted, over it refused", () => {
    expect(validatePayload(text(262_144)).ok).toBe(true);
    expect(validatePayload(text(262_145))).toMatchObject({
      ok: false,
      errors: [{ code: "too_large" }],
      warnings: [],
    });
  });

  test("bytes are counted, not characters", () => {
    expect(validatePayload("é😀").sizeBytes).toBe(8);
  });

  test("limits can be set", () => {
    const limits = { warnBytes: 10, limitBytes: 20 };
    expect(validatePayload(text(15), { limits }).warnings).toHaveLength(1);
    expect(errorsOf([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], { limits })).toEqual(["too_large $"]);
    expect(errorsOf([[[]]], { limits: { maxDepth: 2 } })).toEqual(["too_deep $[0][0]"]);
    expect(errorsOf({ a: 1, b: 2 }, { limits: { maxKeys: 1 } })).toEqual(["too_many_keys $"]);
  });

  test("a payload that is too large is told its other problems too", () => {
    const payload = { a: "x ".repeat(150_000), token: "hunter2-x" };
    expect(errorsOf(payload, { additionalRequired: ["period"] })).toEqual([
      "too_large $",
      "required_missing $.period",
      "string_too_long $.a",
      "sensitive_key $.token",
    ]);
  });
});

describe("content", () => {
  const refused: [string, unknown, string][] = [
    ["a secret's name", { api_key: "hunter2-x" }, "sensitive_key $.api_key"],
    ["a secret", { a: "redis://:hunter2-x@cache" }, "sensitive_value $.a"],
    ["a mail body", { email_body: "Hi" }, "embedded_content $.email_body"],
    ["a bigint", { a: 1n }, "not_json $.a"],
    ["undefined", undefined, "not_json $"],
    ["a number that is not finite", { a: Number.POSITIVE_INFINITY }, "non_finite_number $.a"],
    ["U+0000", { a: "\u0000" }, "null_character $.a"],
    ["a lone surrogate", { a: "\udfff" }, "lone_surrogate $.a"],
    ["a prototype key", JSON.parse('{"__proto__":1}'), "forbidden_key $.__proto__"],
  ];
  test.each(refused)("refuses %s", (_, payload, problem) => {
    expect(errorsOf(payload)).toEqual([problem]);
  });

  test("refuses 100,000 levels, which JSON.stringify cannot write", () => {
    let payload: unknown = 1;
    for (let i = 0; i < 100_000; i++) payload = [payload];
    expect(validatePayload(payload).errors).toMatchObject([{ code: "too_deep" }]);
  });

  test("refuses what throws while it is written", () => {
    expect(errorsOf({ a: 1, toJSON: () => 1 })).toEqual(["not_json $"]);
    const broken = () => {
      throw new Error("of the caller's own");
    };
    expect(errorsOf(Object.defineProperty({}, "a", { get: broken, enumerable: true }))).toEqual([
      "not_json $",
    ]);
    expect(errorsOf(new Proxy({}, { ownKeys: broken }))).toEqual(["not_json $"]);
    const toJSON = () => {
      throw new Error("not today");
    };
    const hidden = Object.defineProperty({ a: 1 }, "toJSON", { value: toJSON });
    expect(errorsOf(hidden)).toEqual(["not_json $"]);
  });

  test("finds every problem of what cannot be written as JSON", () => {
    const payload = { a: 1n, b: "\u0000", token: "hunter2-x" };
    expect(errorsOf(payload)).toEqual([
      "not_json $.a",
      "null_character $.b",
      "sensitive_key $.token",
    ]);
  });

  test("an escaped backslash before u0000 is just text", () => {
    expect(errorsOf({ a: "\\u0000 \\ud800" })).toEqual([]);
  });

  test("messages name paths and never values", () => {
    const payload = {
      user: { password: "hunter2-x" },
      b: "redis://:hunter2-x@c",
      "hunter2\u0000": 1,
    };
    const check = validatePayload(
      { ...payload, correlation_id: "hunter2-x" },
      { category: "sync" },
    );
    const messages = check.errors.map(({ message }) => message).join("\n");
    expect(messages).toContain("$.user.password has a name that stands for a secret (password).");
    expect(JSON.stringify(check)).not.toContain("hunter2-x");
    expect(thrownBy(() => assertPayload(payload)).message).not.toContain("hunter2-x");
  });

  test("a character that PostgreSQL refuses is found in any string and key", () => {
    const text = fc.string({ unit: "binary", maxLength: 5 });
    const bad = fc.constantFrom("\u0000", "\ud800", "\udc00");
    fc.assert(
      fc.property(text, bad, fc.boolean(), (before, character, asKey) => {
        const value = `${before} ${character}`;
        expect(validatePayload(asKey ? { [value]: 1 } : [value]).ok).toBe(false);
      }),
    );
  });
});

describe("assertPayload", () => {
  test("returns the check with its warnings", () => {
    expect(assertPayload(scan, { category: "documents" }).ok).toBe(true);
  });

  test("throws PAYLOAD_INVALID with every problem", () => {
    const error = thrownBy(() => assertPayload({ token: "hunter2-x" }, { category: "sync" }));
    expect(error.code).toBe("PAYLOAD_INVALID");
    expect(codesOf(error)).toHaveLength(5);
    expect(error.message).toContain("$.tenant_id is required and missing.");
  });

  test("throws PAYLOAD_TOO_LARGE when size is the only problem", () => {
    const large = "x".repeat(300_000);
    expect(thrownBy(() => assertPayload({ a: large })).code).toBe("PAYLOAD_TOO_LARGE");
    const both = thrownBy(() => assertPayload({ a: large, token: "hunter2-x" }));
    expect(both.code).toBe("PAYLOAD_INVALID");
  });

  test("the message shows five problems and counts the rest", () => {
    const payload = Array.from({ length: 9 }, () => Number.NaN);
    expect(thrownBy(() => assertPayload(payload)).message).toMatch(/\$\[4\][^$]* And 4 more\.$/);
  });
});

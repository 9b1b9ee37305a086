import { describe, expect, test } from "vitest";
import { defineJob, exponentialBackoff } from "../../src/index.ts";

// biome-ignore lint/suspicious/noExplicitAny: what is not allowed is the point.
const define = defineJob as (options: any) => unknown;
const type = "x";
const refused = expect.objectContaining({ code: "OPTION_INVALID" });

const wrong: readonly (readonly [string, unknown])[] = [
  ["nothing", undefined],
  ["null", null],
  ["a text", "mail.welcome"],
  ["a run that is none", { type, run: "run" }],
  ["a run that is null", { type, run: null }],
  ["a classifier that is none", { type, classify: "transient" }],
  ["an ordering key that is a text", { type, orderingKey: "user" }],
  ["a limit key that is a text", { type, limitKey: "user" }],
  ["a delay that is a number", { type, delayMs: 5 }],
  ["a priority that is a number", { type, priority: 5 }],
  ["a retry that is a number", { type, retry: 5 }],
  ["a retry that is null", { type, retry: null }],
  ["a retry with a wrong base", { type, retry: { baseMs: "1s" } }],
  ["a retry with a negative base", { type, retry: { baseMs: -1 } }],
  ["a retry with a wrong base of a class", { type, retry: { baseMs: { transient: Number.NaN } } }],
  ["a retry with an unknown class", { type, retry: { baseMs: { often: 5 } } }],
  ["a retry with a wrong cap", { type, retry: { capMs: -1 } }],
  ["a retry with too much jitter", { type, retry: { jitter: 2 } }],
  ["a retry with an unknown field", { type, retry: { base: 5 } }],
  ["a payload that is no schema", { type, payload: { id: "string" } }],
  ["a payload that is null", { type, payload: null }],
  ["a version that is a number", { type, payloadVersion: 1 }],
  ["a version with one part", { type, payloadVersion: "2" }],
  ["upcasters that are functions", { type, upcasters: { "1.0": (p: unknown) => p } }],
  ["an upcaster that leads nowhere", { type, upcasters: { "1.0": { to: "1.0", up: String } } }],
  ["an upcaster that leads back", { type, upcasters: { "1.1": { to: "1.0", up: String } } }],
  ["an upcaster from no version", { type, upcasters: { x: { to: "2.0", up: String } } }],
  [
    "an upcaster beyond the version",
    { type, payloadVersion: "2.0", upcasters: { "1.0": { to: "3.0", up: String } } },
  ],
  ["a rate limit without a key", { type, rateLimit: { limit: 1, windowMs: 1_000 } }],
  ["a rate limit that is null", { type, rateLimit: null }],
  [
    "a rate limit whose key is a text",
    { type, rateLimit: { limit: 1, windowMs: 1_000, key: "k" } },
  ],
  ["a category that is a number", { type, category: 5 }],
  ["another category for a listed type", { type: "document_scan", category: "maintenance" }],
  ["required fields that are a text", { type, additionalRequired: "id" }],
];

describe("defineJob", () => {
  test.each(wrong)("refuses %s", (_, options) => {
    expect(() => define(options)).toThrowError(refused);
  });

  test("refuses an option that there is not, by name, and says what may be meant", () => {
    const message = '"maxAttemps" is not a field of defineJob. Did you mean "maxAttempts"?';
    expect(() => define({ type, maxAttemps: 3 })).toThrowError(message);
  });

  test("takes a schema that is a function, and options that are undefined", () => {
    const schema = Object.assign(() => {}, {
      "~standard": { version: 1, vendor: "v", validate: (value: unknown) => ({ value }) },
    });
    expect(define({ type, payload: schema, retry: undefined, run: undefined })).toBeDefined();
  });

  test("takes names with marks and joiners, and none that begin with one", () => {
    const family = "\u{1f468}\u200d\u{1f469}\u200d\u{1f467}";
    for (const name of ["re\u0301sume\u0301", family, "❤\ufe0f mail", "क्षि"])
      expect(define({ type: name, queue: name })).toMatchObject({ type: name });
    for (const name of ["\u0301", "\u200d", " ", "a\u200b", "a\u202eb", "a\n"])
      expect(() => define({ type: name })).toThrowError(refused);
  });

  test("takes one base for all classes that are tried again", () => {
    const policy = exponentialBackoff({ baseMs: 10, jitter: 0 });
    expect(policy({ class: "rate_limited" }, 1, 0.5)).toBe(10);
    expect(policy({ class: "transient" }, 2, 0.5)).toBe(20);
  });
});

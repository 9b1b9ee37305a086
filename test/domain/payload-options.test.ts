// What callers without types may say about a payload's rules: a slip must not switch them off.

import { describe, expect, test } from "vitest";
import { MillraceError } from "../../src/domain/errors.ts";
import { createEnvelope, validatePayload } from "../../src/domain/payload-rules.ts";

// biome-ignore lint/suspicious/noExplicitAny: what is not allowed is the point.
type Anything = any;

const newId = () => "018f3b1e-7c2a-7def-8a1b-2c3d4e5f6a7b";

function refused(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof MillraceError && error.code === "OPTION_INVALID") return error.message;
    throw error;
  }
  throw new Error("it was accepted");
}

describe("validatePayload", () => {
  const slips: readonly Anything[] = [
    { categori: "documents" },
    "documents",
    null,
    ["documents"],
    new Map([["category", "documents"]]),
    { category: 5 },
    { category: null },
    { additionalRequired: "abc" },
    { additionalRequired: [5] },
    { categories: ["documents"] },
    { limits: { limitByte: 5 } },
    { limits: { limitBytes: "5" } },
    { limits: 5 },
  ];
  test.each(slips.map((slip) => [JSON.stringify(slip), slip]))("refuses %s", (_, slip) => {
    refused(() => validatePayload({ a: 1 }, slip));
  });

  test("says which option was probably meant", () => {
    const slip: Anything = { categori: "documents" };
    expect(refused(() => validatePayload({}, slip))).toContain('Did you mean "category"?');
  });

  test("takes options that are undefined as not given", () => {
    const nothing = { category: undefined, additionalRequired: undefined, limits: undefined };
    expect(validatePayload({}, nothing).ok).toBe(true);
    expect(validatePayload({}, undefined).ok).toBe(true);
  });
});

describe("createEnvelope", () => {
  const slips: readonly Anything[] = [
    undefined,
    null,
    "acme",
    { tenantId: "acme" },
    { tenantId: "acme", correlationId: newId() },
    { tenantId: "acme", newId: 5 },
    { tenantId: "acme", newId, tenant: "acme" },
    { tenantId: "acme", newId, references: "abc" },
    { tenantId: "acme", newId, category: 5 },
  ];
  test.each(slips.map((slip) => [JSON.stringify(slip), slip]))("refuses %s", (_, slip) => {
    refused(() => createEnvelope(slip));
  });

  test("needs no newId where both ids are given", () => {
    const given: Anything = { tenantId: "a", correlationId: newId(), idempotencyKey: "k" };
    expect(createEnvelope(given)).toMatchObject({ tenant_id: "a", idempotency_key: "k" });
  });
});

import { describe, expect, test } from "vitest";
import { MillraceError } from "../../src/domain/errors.ts";
import { createEnvelope, validatePayload } from "../../src/domain/payload-rules.ts";

const id = "018f3b1e-7c2a-7def-8a1b-2c3d4e5f6a7b";

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

describe("createEnvelope", () => {
  let made = 0;
  const newId = () => `018f3b1e-7c2a-7def-8a1b-${String(++made).padStart(12, "0")}`;

  test("makes a payload that its category accepts", () => {
    const payload = createEnvelope({
      category: "documents",
      tenantId: "acme",
      references: { document_id: "d1" },
      data: { pages: 3 },
      newId,
    });
    expect(payload).toMatchObject({
      tenant_id: "acme",
      document_id: "d1",
      payload_version: "1.0",
      data: { pages: 3 },
    });
    expect(payload.correlation_id).not.toBe(payload.idempotency_key);
    expect(validatePayload(payload, { category: "documents" }).ok).toBe(true);
  });

  test("keeps what is given and makes no id for it", () => {
    const payload = createEnvelope({
      tenantId: "acme",
      correlationId: id,
      idempotencyKey: "k1",
      payloadVersion: "2.1",
      newId: () => {
        throw new Error("not needed");
      },
    });
    expect(payload).toEqual({
      tenant_id: "acme",
      correlation_id: id,
      idempotency_key: "k1",
      payload_version: "2.1",
    });
  });

  test("throws every problem at once", () => {
    const error = thrownBy(() =>
      createEnvelope({
        category: "documents",
        tenantId: "",
        correlationId: "abc",
        references: { tenant_id: "other" },
        payloadVersion: "two",
        data: { token: "hunter2-x" },
        newId,
      }),
    );
    expect(error.code).toBe("PAYLOAD_INVALID");
    expect(codesOf(error).sort()).toEqual([
      "correlation_id_not_uuid",
      "payload_version_invalid",
      "required_empty",
      "required_missing",
      "reserved_field",
      "sensitive_key",
    ]);
  });

  test("checks its own fields without a category too", () => {
    const error = thrownBy(() => createEnvelope({ tenantId: " ", correlationId: "abc", newId }));
    expect(codesOf(error)).toEqual(["required_empty", "correlation_id_not_uuid"]);
  });

  test("a reference that is given but undefined counts as missing", () => {
    const references = { document_id: undefined } as unknown as Record<string, string>;
    const options = { category: "documents", tenantId: "acme", references, newId };
    expect(codesOf(thrownBy(() => createEnvelope(options)))).toEqual(["required_missing"]);
  });
});

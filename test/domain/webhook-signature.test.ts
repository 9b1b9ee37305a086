// Rule 19: signed with HMAC and a timestamp. The expected signature is made here by hand.

import { createHash, createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { verifyWebhook } from "../../src/index.ts";
import { signatureHeaders, signingKeyOf } from "../../src/runtime/webhook-signature.ts";

const secret = "whsec_0123456789abcdef0123456789abcdef";
const other = "whsec_fedcba9876543210fedcba9876543210";
const id = "01890000-0000-7000-8000-000000000001";
const now = new Date("2026-03-01T12:00:00.500Z");
const body = JSON.stringify({
  ...{ id: "n1", delivery_id: id, kind: "job.dead", at: "2026-03-01T11:59:59.000Z" },
  ...{ tenant: "acme", queue: "mail", data: { type: "grüße" } },
});
const keys = [signingKeyOf(secret)];
const headers = signatureHeaders(id, body, { keys, now });
const refused = expect.objectContaining({ code: "WEBHOOK_SIGNATURE_INVALID" });
const verify = (options: Partial<Parameters<typeof verifyWebhook>[0]> = {}) =>
  verifyWebhook({ secret, headers, body, now, ...options });

describe("a webhook's signature", () => {
  it("is HMAC-SHA256 over delivery id, timestamp and body, keyed by the secret's SHA-256", () => {
    const t = Math.floor(now.getTime() / 1000);
    const key = createHash("sha256").update(secret).digest();
    const expected = createHmac("sha256", key).update(`${id}.${t}.${body}`).digest("hex");
    expect(headers).toEqual({
      "millrace-delivery": id,
      "millrace-signature": `t=${t},v1=${expected}`,
    });
  });

  it("is accepted from Node's headers, from fetch's, and over bytes", () => {
    const told = { id: "n1", deliveryId: id, kind: "job.dead", queue: "mail", tenant: "acme" };
    expect(verify()).toMatchObject({ ...told, data: { type: "grüße" } });
    expect(verify({ headers: new Headers(headers) })).toMatchObject(told);
    expect(verify({ body: Buffer.from(body) })).toMatchObject(told);
  });

  it("is accepted under either secret while they are being changed", () => {
    const both = { keys: [signingKeyOf(other), signingKeyOf(secret)], now };
    const twice = signatureHeaders(id, body, both);
    expect(verify({ headers: twice }).deliveryId).toBe(id);
    expect(verify({ headers: twice, secret: other }).deliveryId).toBe(id);
    expect(verify({ secret: [other, secret] }).deliveryId).toBe(id);
  });

  it("is refused under another secret, or none", () => {
    expect(() => verify({ secret: other })).toThrow(refused);
    expect(() => verify({ secret: [] })).toThrow(refused);
  });

  it("is refused for another body, another delivery id or another time", () => {
    expect(() => verify({ body: body.replace("acme", "acmf") })).toThrow(refused);
    expect(() => verify({ headers: { ...headers, "millrace-delivery": "x" } })).toThrow(refused);
    const signature = headers["millrace-signature"] ?? "";
    const later = signature.replace(/t=\d+/, `t=${Math.floor(now.getTime() / 1000) + 1}`);
    expect(() => verify({ headers: { ...headers, "millrace-signature": later } })).toThrow(refused);
  });

  it("is refused outside the replay window, on either side", () => {
    const at = (seconds: number) => new Date(now.getTime() + seconds * 1000);
    expect(verify({ now: at(299) }).deliveryId).toBe(id);
    expect(() => verify({ now: at(301) })).toThrow(refused);
    expect(() => verify({ now: at(-301) })).toThrow(refused);
    expect(() => verify({ now: at(11), toleranceSeconds: 10 })).toThrow(refused);
  });

  it.each([
    {},
    { "millrace-delivery": id },
    { "millrace-signature": headers["millrace-signature"] },
    { ...headers, "millrace-signature": "" },
    { ...headers, "millrace-signature": "t=1" },
    { ...headers, "millrace-signature": "v1=00" },
    { ...headers, "millrace-signature": `t=x,v1=${"0".repeat(64)}` },
    { ...headers, "millrace-signature": [headers["millrace-signature"] ?? "", "t=1"] },
    { ...headers, "Millrace-Signature": "t=1" },
  ])("is refused when headers are missing or malformed: %o", (wrong) =>
    expect(() => verify({ headers: wrong as Record<string, string> })).toThrow(refused),
  );

  it("is refused without a word of the secret", () => {
    const error = (() => {
      try {
        return verify({ secret: other });
      } catch (thrown) {
        return thrown;
      }
    })();
    expect(JSON.stringify(error) + String(error)).not.toContain(other);
  });
});

it("refuses what is no request with a code", () => {
  const refused = expect.objectContaining({ code: "WEBHOOK_SIGNATURE_INVALID" });
  expect(() => verifyWebhook(undefined as never)).toThrow(refused);
  for (const wrong of [
    { headers: null },
    { headers: undefined },
    { body: undefined },
    { body: {} },
  ])
    expect(() => verify(wrong as never)).toThrow(refused);
  for (const wrong of [undefined, null, [5]])
    expect(() => verify({ secret: wrong as never })).toThrow(/secret/);
});

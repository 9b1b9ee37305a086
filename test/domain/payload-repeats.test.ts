// What is small in memory and endless as text, and key names by the thousand.

import fc from "fast-check";
import { expect, test } from "vitest";
import { payloadError, validatePayload, writePayload } from "../../src/domain/payload-rules.ts";
import { defaultShapeLimits, inspect } from "../../src/domain/payload-shape.ts";
import { judgeKey } from "../../src/domain/sensitive-keys.ts";

const rulesOf = (payload: unknown) => validatePayload(payload).errors.map(({ code }) => code);

test("what is written is the JSON text, and no payload is taken for larger than it is", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (payload) => {
      const text = JSON.stringify(payload);
      const maxBytes = Buffer.byteLength(text);
      const limits = { ...defaultShapeLimits, maxBytes };
      expect(inspect(payload, { limits }).map(({ rule }) => rule)).not.toContain("too_large");
      const { check, json } = writePayload(payload);
      if (check.ok) expect([json, check.sizeBytes]).toEqual([text, maxBytes]);
    }),
  );
});

const jwtLike = `${"eyJhbGciOiJIUzI1NiJ9"}.${"eyJzdWIiOiIxMjM0NTY3ODkwIn0"}.${"c2lnbmF0dXJl"}`;
const names = ["a", "city", "user_id", "type", "password", "token", "note", "email_body", "pin"];
const { value } = fc.letrec((part) => ({
  value: fc.oneof({ depthSize: "medium" }, part("leaf"), part("list"), part("object")),
  leaf: fc.oneof(
    fc.constantFrom("", "Oslo", "leave it beside the door", "x".repeat(30), jwtLike, "1234"),
    fc.constantFrom(
      0,
      -1.5,
      1e13,
      4_111_111_111_111_111,
      -1e300,
      Number.NaN,
      Number.NEGATIVE_INFINITY,
    ),
    fc.constantFrom(null, true, undefined),
  ),
  list: fc.array(part("value"), { maxLength: 4 }),
  object: fc
    .array(
      fc.tuple(fc.constantFrom(...names, "constructor", jwtLike, "k".repeat(70)), part("value")),
    )
    .map((entries) => Object.fromEntries(entries)),
}));

// Where characters are looked at, every property is looked at closely.
test("what passes at a glance would pass a closer look, and counts as much", () => {
  const limits = fc.record({
    maxDepth: fc.integer({ min: 1, max: 6 }),
    maxKeys: fc.integer({ min: 1, max: 20 }),
    maxValues: fc.integer({ min: 1, max: 30 }),
    maxStringLength: fc.integer({ min: 3, max: 40 }),
    maxBytes: fc.integer({ min: 1, max: 300 }),
  });
  const property = fc.property(value, limits, (payload, small) => {
    for (const limits of [small, defaultShapeLimits]) {
      const closely = inspect(payload, { limits, checkCharacters: true });
      expect(inspect(payload, { limits, checkCharacters: false })).toEqual(closely);
    }
  });
  fc.assert(property, { numRuns: 3_000 });
});

test("a payload that repeats its parts is refused before all of it is read or written", () => {
  let reads = 0;
  const leaf = {
    get a() {
      reads++;
      return 1;
    },
  };
  let objects: unknown = leaf;
  let lists: unknown = leaf;
  for (let i = 0; i < 17; i++) {
    objects = { a: objects, b: objects };
    lists = [lists, lists];
  }
  expect(rulesOf(objects)).toEqual(["too_many_keys"]);
  expect(rulesOf(lists)).toEqual(["too_many_keys"]);
  expect(reads).toBeLessThan(50_000);
});

test("a text that is repeated counts each time", () => {
  const text = "x".repeat(150_000);
  const payload = Array(10).fill(Array(10).fill(Array(10).fill(text)));
  const { check, json } = writePayload(payload);
  expect(check).toMatchObject({ errors: [{ code: "too_large" }], sizeBytes: 0 });
  expect(json).toBeUndefined();
  expect(payloadError(check.errors).code).toBe("PAYLOAD_TOO_LARGE");
});

test("a key is judged the same, however many others were judged in between", () => {
  const keys = ["api_key", "userId", "reset_password_2", "email-body", "is_secret", "Größe"];
  const verdicts = keys.map(judgeKey);
  for (let n = 0; n < 25_000; n++) {
    expect(judgeKey(`line${n}_token`).secret).toBe("token");
    if (n % 5_000 === 0) expect(keys.map(judgeKey)).toEqual(verdicts);
  }
  expect(keys.map(judgeKey)).toEqual(verdicts);
});

import fc from "fast-check";
import { expect, test } from "vitest";
import { embeddedValueKind } from "../../src/domain/embedded-content.ts";
import { isPlainWords } from "../../src/domain/plain-words.ts";
import { secretValueKind } from "../../src/domain/sensitive-values.ts";
import { secretsByShape } from "./sensitive-cases.ts";

test.each([
  "leave it beside the door",
  "Utrecht",
  "Hall B, dock 4 (ring twice). Thank you!",
  "Grüße aus Zürich; bis später",
  "",
])("is plain: %j", (text) => {
  expect(isPlainWords(text)).toBe(true);
});

test.each([
  ["a word as long as a key", "AKIAABCDEFGHIJKLMNOP"],
  ["letters only, as in Base64", "Basic dXNlcjpwYXNz"],
  ["a bearer's word and its full stop", "Bearer abcdefghijkl123."],
  ["a bearer's word and many full stops", "bearer tokenAKIAya29..."],
  ["words joined by a full stop", "see ya29.abcdefgh"],
  ["groups of four digits", "4111 1111 1111 1111"],
  ["a quote", 'say "password"'],
  ["what has a length of its own", "word ".repeat(1_000)],
])("is in doubt: %s", (_, text) => {
  expect(isPlainWords(text)).toBe(false);
});

test.each(secretsByShape)("is in doubt: %s", (_, value) => {
  expect(isPlainWords(value)).toBe(false);
  expect(isPlainWords(`it is ${value}`)).toBe(false);
});

const parts = fc.constantFrom(
  ...["Basic ", "basic ", "Bearer ", "bearer ", "AKIA", "SK", "AIza", "eyJ", "ya29.", "SG.", "key"],
  ...["password", "token", "4111", "411", "1111", " ", ".", ". ", ",", "a", "B7", "dXNlcjpwYXNz"],
  ...["é", "abcdef", "ABCDEFGHIJ", "123", "From: ", "data", "\n", "-", "=", ":", "\u2028"],
);

test("whatever is plain would have passed the close look", () => {
  let plain = 0;
  fc.assert(
    fc.property(fc.array(parts, { maxLength: 12 }), (chosen) => {
      const text = chosen.join("");
      if (!isPlainWords(text)) return;
      plain++;
      expect(secretValueKind(text, false)).toBeUndefined();
      expect(embeddedValueKind(text)).toBeUndefined();
    }),
    { numRuns: 20_000 },
  );
  expect(plain).toBeGreaterThan(1_000);
});

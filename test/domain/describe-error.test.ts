import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { describeError } from "../../src/domain/describe-error.ts";

const retryable = { class: "retryable" } as const;
const described = (thrown: unknown) => describeError("type", thrown, retryable);
const ofMessage = (message: string) => described(new Error(message));

describe("a described error", () => {
  it("has a message of at most 500 bytes and a stack of at most 4 KB, both well-formed", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 3_000 }), (text) => {
        const error = new Error(`\uDC00${text}\u0000`);
        error.stack = `${text}${text}\uD800`;
        const { message, stack = "" } = described(error);
        expect(Buffer.byteLength(message)).toBeLessThanOrEqual(500);
        expect(Buffer.byteLength(stack)).toBeLessThanOrEqual(4_096);
        for (const stored of [message, stack]) {
          expect(stored.isWellFormed()).toBe(true);
          expect(stored).not.toContain("\u0000");
        }
      }),
    );
  });

  it("is cut between characters and not inside one", () => {
    for (const [character, bytes] of [
      ["x", 1],
      ["é", 2],
      ["字", 3],
      ["😀", 4],
    ] as const) {
      for (const offset of [0, 1, 2, 3]) {
        const { message } = ofMessage("-".repeat(offset) + character.repeat(600));
        const whole = Math.floor((500 - offset) / bytes);
        expect(message).toBe("-".repeat(offset) + character.repeat(whole));
      }
    }
  });

  it("keeps a message of exactly 500 bytes as it is", () => {
    const whole = `${"字".repeat(166)}xx`;
    expect(ofMessage(whole).message).toBe(whole);
    expect(ofMessage(`\uFEFF${"x".repeat(600)}`).message.startsWith("\uFEFF")).toBe(true);
  });

  it("neutralises NUL and lone surrogates", () => {
    expect(ofMessage("a\u0000b\uD800c").message).toBe("a\uFFFDb\uFFFDc");
  });

  it("describes whatever was thrown, and never fails itself", () => {
    const cyclic: Record<string, unknown> = Object.create(null);
    cyclic.self = cyclic;
    const odd = Object.assign(new Error("x"), { message: 42, name: Symbol("n"), stack: {} });
    const words = [undefined, null, 7, 7n, Symbol("s"), () => 1, "text", { a: 1 }].map(
      (thrown) => described(thrown).message,
    );
    expect(words).toEqual([
      "undefined",
      "null",
      "7",
      "7",
      "Symbol(s)",
      "() => 1",
      "text",
      '{"a":1}',
    ]);
    expect(described(cyclic).message).toBe("[object Object]");
    expect(described(odd).message).toBe("42");
    fc.assert(fc.property(fc.anything(), (thrown) => void described(thrown)));
  });

  it("uses the error's name when it has no message", () => {
    expect(described(new TypeError()).message).toBe("TypeError");
  });
});

describe("a fingerprint", () => {
  const print = (message: string) => ofMessage(message).fingerprint;

  it("groups messages that differ in ids, numbers and quoted parts only", () => {
    const cases = [
      ["job 17 failed", "job 4242 failed"],
      [
        "no item 018f6f0e-7b7a-7000-8000-0123456789ab",
        "no item 9c1d8a52-0d3b-4a6e-9a53-ffffffffffff",
      ],
      ["no 507f1f77bcf86cd799439011 here", "no 65a1b2c3d4e5f60718293a4b here"],
      ["no commit deadbee7", "no commit 0badcafe"],
      ["no 01ARZ3NDEKTSV4RRFFQ69G5FAV", "no 01BX5ZZKBKACTAV9WEVGEMMVRZ"],
      ["at 0x7fff5a", "at 0x10"],
      ['file "a.txt" is missing', 'file "other name.txt" is missing'],
    ];
    for (const [one = "", other = ""] of cases) expect(print(one)).toBe(print(other));
  });

  it("keeps different errors apart", () => {
    expect(print("no such file")).not.toBe(print("no such folder"));
    expect(print("internationalization failed")).not.toBe(print("authentication failed"));
    const typed = describeError("other", new Error("x"), retryable);
    expect(typed.fingerprint).not.toBe(print("x"));
    const classed = describeError("type", new Error("x"), { class: "transient" });
    expect(classed.fingerprint).not.toBe(print("x"));
    expect(described(new TypeError("x")).fingerprint).not.toBe(print("x"));
  });

  it("is sixteen hexadecimal digits", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        expect(print(text)).toMatch(/^[0-9a-f]{16}$/);
      }),
    );
  });
});

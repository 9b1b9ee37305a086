import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { defaultShapeLimits, inspect, mostViolations } from "../../src/domain/payload-shape.ts";

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let i = 0; i < depth; i++) value = i % 2 === 0 ? [value] : { a: value };
  return value;
}

function rulesOf(payload: unknown) {
  return inspect(payload).map(({ rule, path }) => [rule, path]);
}

const hiding = (value: object) =>
  Object.defineProperty(value, "toJSON", { value: () => ({ password: "hunter2-x" }) });

class Point {
  x = 1;
}

describe("inspect", () => {
  const accepted: [string, unknown][] = [
    ["null", null],
    ["a string", "hello"],
    ["a number", 1.5],
    ["an array", [1, "a", null, true]],
    ["an object", { a: { b: [{ c: 1 }] } }],
    ["an object without a prototype", Object.assign(Object.create(null), { a: 1 })],
    ["a property that JSON leaves out", { a: undefined, b: 1 }],
    ["an emoji", { "😀": "😀 👩‍👩‍👧" }],
    ["64 levels", nested(64)],
    ["10,000 keys", Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`k${i}`, i]))],
    ["20,000 elements", Array.from({ length: 20_000 }, (_, i) => i)],
  ];
  test.each(accepted)("accepts %s", (_, payload) => {
    expect(inspect(payload)).toEqual([]);
  });

  const refused: [string, unknown, string, string][] = [
    ["undefined", undefined, "not_json", "$"],
    ["undefined in an array", { a: [1, undefined] }, "not_json", "$.a[1]"],
    ["a hole in an array", new Array(1), "not_json", "$[0]"],
    ["a function", { a: () => 1 }, "not_json", "$.a"],
    ["a symbol", { a: Symbol("a") }, "not_json", "$.a"],
    ["a bigint", { a: 1n }, "not_json", "$.a"],
    ["a date", { a: new Date(0) }, "not_json", "$.a"],
    ["a map", { a: new Map() }, "not_json", "$.a"],
    ["bytes", { a: Buffer.from("a") }, "not_json", "$.a"],
    ["a class instance", [new Point()], "not_json", "$[0]"],
    ["an object that writes itself", { a: hiding({ x: 1 }) }, "not_json", "$.a"],
    ["an array that writes itself", { a: hiding([1]) }, "not_json", "$.a"],
    ["an object with a prototype of its own", Object.create({ a: 1 }), "not_json", "$"],
    ["NaN", { a: Number.NaN }, "non_finite_number", "$.a"],
    ["1e400 from JSON", JSON.parse('{"a":1e400}'), "non_finite_number", "$.a"],
    ["U+0000 in a string", { a: "x\u0000" }, "null_character", "$.a"],
    ["U+0000 in a key", { "x\u0000": 1 }, "null_character", '$["x\\u0000"]'],
    ["a lone surrogate", { a: "x\ud800y" }, "lone_surrogate", "$.a"],
    ["a lone low surrogate", ["\udc00"], "lone_surrogate", "$[0]"],
    ["a lone surrogate in a key", { "\ud800": 1 }, "lone_surrogate", '$["\\ud800"]'],
    ["__proto__ from JSON", JSON.parse('{"__proto__":{"a":1}}'), "forbidden_key", "$.__proto__"],
    ["constructor", { a: { constructor: 1 } }, "forbidden_key", "$.a.constructor"],
    ["prototype", { prototype: 1 }, "forbidden_key", "$.prototype"],
    ["a string over the limit", ["x".repeat(256 * 1024 + 1)], "string_too_long", "$[0]"],
  ];
  test.each(refused)("refuses %s", (_, payload, rule, path) => {
    expect(rulesOf(payload)).toEqual([[rule, path]]);
  });

  test("refuses 65 levels, and 100,000 without overflowing the stack", () => {
    expect(inspect(nested(65))).toMatchObject([{ rule: "too_deep" }]);
    expect(inspect(nested(100_000))).toMatchObject([{ rule: "too_deep" }]);
  });

  test("keeps the path of a deep problem short, with its beginning and its end", () => {
    let payload: unknown = Number.NaN;
    for (let i = 20; i > 0; i--) payload = { [`level_${i}_${"k".repeat(40)}`]: payload };
    const path = inspect(payload)[0]?.path ?? "";
    expect(path.length).toBeLessThan(250);
    expect(path).toMatch(/^\$\.level_1_k.*….*\.level_20_k+$/);
  });

  test("refuses a cycle as too deep", () => {
    const payload: Record<string, unknown> = { a: 1 };
    payload.self = payload;
    expect(inspect(payload)).toMatchObject([{ rule: "too_deep" }]);
  });

  test("ends on a cycle that doubles at every level", () => {
    const payload: unknown[] = [];
    payload.push(payload, payload);
    expect(inspect(payload)).toHaveLength(mostViolations);
  });

  test("ends on shared parts that multiply", () => {
    let payload: unknown = 1;
    for (let i = 0; i < 60; i++) payload = [payload, payload];
    const limits = { ...defaultShapeLimits, maxValues: 1_000 };
    expect(inspect(payload, { limits })).toMatchObject([{ rule: "too_many_values", path: "$" }]);
  });

  test("counts every value, the payload itself included", () => {
    const limits = { ...defaultShapeLimits, maxValues: 3 };
    expect(inspect([1, 2], { limits })).toEqual([]);
    expect(inspect([1, 2, 3], { limits })).toMatchObject([{ rule: "too_many_values" }]);
  });

  test("refuses more than 10,000 keys in all objects together", () => {
    const part = Object.fromEntries(Array.from({ length: 5_001 }, (_, i) => [`k${i}`, i]));
    expect(rulesOf([part, part])).toEqual([["too_many_keys", "$"]]);
  });

  test("accepts a plain object of another realm", async () => {
    const { runInNewContext } = await import("node:vm");
    expect(inspect(runInNewContext("({ a: [{ b: 1 }] })"))).toEqual([]);
    expect(inspect(runInNewContext("({ a: new Date(0) })"))).toMatchObject([{ rule: "not_json" }]);
  });

  test("tells every violation with its path", () => {
    const payload = { a: Number.NaN, b: [{ token: "hunter2-x" }], c: { d: 1n, e: "\u0000" } };
    expect(rulesOf(payload)).toEqual([
      ["non_finite_number", "$.a"],
      ["sensitive_key", "$.b[0].token"],
      ["not_json", "$.c.d"],
      ["null_character", "$.c.e"],
    ]);
  });

  test("tells a hundred violations at most", () => {
    expect(inspect(Array.from({ length: 500 }, () => Number.NaN))).toHaveLength(mostViolations);
  });

  test("what has no shape violation survives JSON unchanged", () => {
    fc.assert(
      fc.property(fc.anything({ withBigInt: true, withDate: true, withMap: true }), (payload) => {
        fc.pre(inspect(payload).length === 0);
        const text = JSON.stringify(payload);
        expect(JSON.stringify(JSON.parse(text))).toBe(text);
        expect(JSON.parse(text)).toEqual(withoutNegativeZero(payload));
      }),
    );
  });

  test("no JSON text makes it throw", () => {
    fc.assert(fc.property(fc.json({ maxDepth: 6 }), (text) => void inspect(JSON.parse(text))));
  });

  test("does not change the payload", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (payload) => {
        const before = structuredClone(payload);
        inspect(payload);
        expect(payload).toEqual(before);
      }),
    );
  });
});

// JSON has one zero.
function withoutNegativeZero(value: unknown): unknown {
  if (value === 0) return 0;
  if (Array.isArray(value)) return value.map(withoutNegativeZero);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, withoutNegativeZero(v)]));
}

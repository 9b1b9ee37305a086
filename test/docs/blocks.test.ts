// What the pages show is run: every TypeScript block as a program, every shell block as a command.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { transitionTable } from "../../src/domain/job-state.ts";
import { createDatabase } from "../support/postgres.ts";
import { pages } from "./pages.ts";

const root = join(import.meta.dirname, "..", "..");
let folder = "";

beforeAll(async () => {
  // A user's project: millrace and what its own code imports, as npm would lay them out.
  folder = await mkdtemp(join(tmpdir(), "millrace-docs-"));
  await mkdir(join(folder, "node_modules", "@types"), { recursive: true });
  await symlink(root, join(folder, "node_modules", "millrace"));
  for (const name of ["pg", "postgres", "kysely", "drizzle-orm", "zod"]) {
    await symlink(join(root, "node_modules", name), join(folder, "node_modules", name));
  }
  await mkdir(join(folder, "node_modules", ".bin"));
  await symlink(
    join(root, "dist", "cli", "main.js"),
    join(folder, "node_modules", ".bin", "millrace"),
  );
  await cp(join(root, "examples"), join(folder, "examples"), { recursive: true });
  await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module" }));
});

afterAll(() => rm(folder, { recursive: true, force: true }));

async function run(command: string, args: string[], databaseUrl: string) {
  const path = `${join(folder, "node_modules", ".bin")}:${process.env.PATH}`;
  const env = { ...process.env, PATH: path, DATABASE_URL: databaseUrl, LOG_LEVEL: "warn" };
  const child = spawn(command, args, { cwd: folder, env });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (chunk) => {
      output += chunk;
    });
  }
  await once(child, "close");
  return { code: child.exitCode, output };
}

for (const { file, blocks } of pages) {
  const shown = blocks.filter(({ language }) => language === "ts" || language === "sh");
  if (shown.length === 0) continue;
  describe(file, () => {
    test.each(shown)("the block at line $line runs", async ({ language, text, line }) => {
      const database = await createDatabase();
      try {
        const program = join(folder, `block-${line}.mjs`);
        if (language === "ts") await writeFile(program, text);
        const { code, output } =
          language === "ts"
            ? await run(process.execPath, [program], database.url)
            : await run("bash", ["-euo", "pipefail", "-c", text], database.url);
        expect(code, output).toBe(0);
      } finally {
        await database.drop();
      }
    });
  });
}

test("the state diagram is the transition table", () => {
  const page = readFileSync(join(root, "docs", "internals.md"), "utf8");
  const drawn = [...page.matchAll(/^ {2}(\w+) --> (\w+): (\w+)$/gm)].map(
    ([, from, to, by]) => `${by}: ${from} → ${to}`,
  );
  const sources = Object.entries(transitionTable).flatMap(([by, { from }]) =>
    from.map((state) => `${by}: ${state}`),
  );
  const targets = Object.entries(transitionTable).flatMap(([by, { to }]) =>
    to.map((state) => `${by} → ${state}`),
  );
  expect(new Set(drawn.map((arrow) => arrow.replace(/ → .*/, "")))).toEqual(new Set(sources));
  expect(new Set(drawn.map((arrow) => arrow.replace(/: \w+/, "")))).toEqual(new Set(targets));
});

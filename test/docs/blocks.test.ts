// What the pages show is run: every TypeScript block as a program, every shell block as a command.

import { readFileSync } from "node:fs";
import { cp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { transitionTable } from "../../src/domain/job-state.ts";
import { createDatabase } from "../support/postgres.ts";
import { createUserProject, root, type UserProject } from "../support/user-project.ts";
import { isStory, pages } from "./pages.ts";

let project: UserProject;

beforeAll(async () => {
  project = await createUserProject(["pg", "postgres", "kysely", "drizzle-orm", "zod"]);
  await cp(join(root, "examples"), join(project.folder, "examples"), { recursive: true });
});

afterAll(() => project.remove());

for (const { file, blocks } of pages.filter((page) => !isStory(page))) {
  const shown = blocks.filter(({ language }) => language === "ts" || language === "sh");
  if (shown.length === 0) continue;
  describe(file, () => {
    test.each(shown)("the block at line $line runs", async ({ language, text, line }) => {
      const database = await createDatabase();
      try {
        const env = { DATABASE_URL: database.url, LOG_LEVEL: "warn" };
        const program = join(project.folder, `block-${line}.mjs`);
        if (language === "ts") await writeFile(program, text);
        const { code, output } =
          language === "ts"
            ? await project.run(process.execPath, [program], env)
            : await project.run("bash", ["-euo", "pipefail", "-c", text], env);
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

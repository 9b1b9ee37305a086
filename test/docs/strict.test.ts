// What the pages show in TypeScript passes the strictest check, as it stands there.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createUserProject, root, type UserProject } from "../support/user-project.ts";
import { pages } from "./pages.ts";

let project: UserProject;

beforeAll(async () => {
  const imported = ["pg", "postgres", "kysely", "drizzle-orm", "zod"];
  project = await createUserProject([...imported, "@types/node", "@types/pg"]);
});
afterAll(() => project.remove());

/** The strictest check that the pages speak of; one run for all, since it takes its time. */
async function compile(files: readonly string[]) {
  const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
  const strict = ["--noEmit", "--strict", "--module", "nodenext", "--target", "es2022"];
  return project.run(process.execPath, [tsc, ...strict, ...files]);
}

/** So that the check is seen to be one: a payload without a schema is unknown to it. */
const untyped = `import { defineJob } from "millrace";
export const job = defineJob({ type: "t", run: ({ payload }) => payload.userId });
`;

/** Drizzle's declarations are for other databases too, whose drivers are not here. Ours are checked. */
const isOfDrizzle = (line: string) => line.includes("node_modules/drizzle-orm/");

test("every TypeScript block of the pages compiles under strict", async () => {
  const files = ["untyped.ts"];
  const shownOn = new Set<string>();
  await writeFile(join(project.folder, "untyped.ts"), untyped);
  for (const { file, blocks } of pages) {
    for (const { line, text } of blocks.filter(({ language }) => language === "ts")) {
      const name = `${file.replaceAll(/\W/g, "-")}-${line}.ts`;
      await writeFile(join(project.folder, name), `${text}\n`);
      files.push(name);
      shownOn.add(file);
    }
  }
  const first = ["README.md", "docs/quick-start.md", "docs/guides/jobs.md"];
  expect([...shownOn]).toEqual(expect.arrayContaining(first));
  const { output } = await compile(files);
  // What is indented explains the line before it.
  const errors = output.split("\n").filter((line) => /^\S/.test(line) && !isOfDrizzle(line));
  expect(errors, output).toEqual([
    expect.stringMatching(/^untyped\.ts\(2,\d+\): .*'payload' is of type 'unknown'/),
  ]);
});

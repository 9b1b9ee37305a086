// What the first pages show in TypeScript passes the strictest check, as it stands there.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createUserProject, root, type UserProject } from "../support/user-project.ts";
import { pages } from "./pages.ts";

let project: UserProject;

beforeAll(async () => {
  project = await createUserProject(["zod", "@types/node"]);
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

test("README and quick start compile under strict", async () => {
  const files = ["untyped.ts"];
  await writeFile(join(project.folder, "untyped.ts"), untyped);
  for (const file of ["README.md", "docs/quick-start.md"]) {
    const blocks = pages.find((page) => page.file === file)?.blocks ?? [];
    const shown = blocks.filter(({ language }) => language === "ts");
    expect(shown.length, file).toBeGreaterThan(0);
    for (const { line, text } of shown) {
      const name = `${file.replaceAll(/\W/g, "-")}-${line}.ts`;
      await writeFile(join(project.folder, name), `${text}\n`);
      files.push(name);
    }
  }
  const { output } = await compile(files);
  expect(output.trim().split("\n")).toEqual([
    expect.stringMatching(/^untyped\.ts\(2,\d+\): .*'payload' is of type 'unknown'/),
  ]);
});

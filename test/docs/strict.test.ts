// What the pages show in TypeScript passes the strictest check, as it stands there.

import { cp, mkdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
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
async function compile(files: readonly string[], of = project) {
  const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
  const strict = ["--noEmit", "--strict", "--module", "nodenext", "--target", "es2022"];
  return of.run(process.execPath, [tsc, ...strict, ...files]);
}

interface Manifest {
  readonly exports: Readonly<Record<string, unknown>>;
  readonly dependencies: Readonly<Record<string, string>>;
}

/** A copy, as npm would install it: through a link the compiler would see what only our checkout has. */
async function install({ folder }: UserProject, dependencies: readonly string[]): Promise<void> {
  const modules = join(folder, "node_modules");
  await rm(join(modules, "millrace"));
  await cp(join(root, "package.json"), join(modules, "millrace", "package.json"));
  await cp(join(root, "dist"), join(modules, "millrace", "dist"), { recursive: true });
  for (const name of dependencies) {
    await mkdir(dirname(join(modules, name)), { recursive: true });
    await symlink(join(root, "node_modules", name), join(modules, name));
  }
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

test("every entry point compiles with Node's types alone: a driver's are not needed", async () => {
  const manifest: Manifest = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
  const bare = await createUserProject(["@types/node"]);
  try {
    await install(bare, Object.keys(manifest.dependencies));
    const entries = Object.keys(manifest.exports).filter((path) => !path.endsWith(".json"));
    expect(entries).toContain("./testing");
    const lines = entries.map((path, i) => `export * as e${i} from "millrace${path.slice(1)}";`);
    await writeFile(join(bare.folder, "entries.ts"), `${lines.join("\n")}\n`);
    expect(await compile(["entries.ts"], bare)).toEqual({ code: 0, output: "" });
  } finally {
    await bare.remove();
  }
});

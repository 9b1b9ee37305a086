// Pages that build a small project step by step are followed word by word: files are kept as the page
// says, commands run in their order, on the embedded database where the page names no other. And what an
// example does only where there is Redis.

import { cp, readdir, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createDatabase } from "../support/postgres.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { createUserProject, root, type UserProject } from "../support/user-project.ts";
import { isStory, pages } from "./pages.ts";

let project: UserProject;
let database: Awaited<ReturnType<typeof createDatabase>>;
let redis: RedisServer;

beforeAll(async () => {
  project = await createUserProject(["zod", "typescript", "@types/node"]);
  const tsc = join("..", "typescript", "bin", "tsc");
  await symlink(tsc, join(project.folder, "node_modules", ".bin", "tsc"));
  database = await createDatabase();
  redis = await startRedis();
});

afterAll(async () => {
  await project.remove();
  await redis.drop();
  await database.drop();
});

/** Where the page names the reader's servers, ours stand in. */
const withServers = (text: string) =>
  text
    .replaceAll("postgres://app:secret@db.example.com:5432/app", database.url)
    .replaceAll("redis://cache.example.com:6379", redis.url);

async function follow(file: string): Promise<string[]> {
  const outputs: string[] = [];
  for (const { language, saveAs, text, line } of pages.find((page) => page.file === file)?.blocks ??
    []) {
    if (saveAs !== null) await writeFile(join(project.folder, saveAs), `${text}\n`);
    if (language !== "sh") continue;
    const { code, output } = await project.run("bash", [
      "-euo",
      "pipefail",
      "-c",
      withServers(text),
    ]);
    expect(code, `line ${line}:\n${output}`).toBe(0);
    outputs.push(output);
  }
  return outputs;
}

test("the quick start does what it says", async () => {
  const [first, killed, ownServers, inTypeScript, ...more] = await follow("docs/quick-start.md");
  expect(first).toContain("brewing for Ann, attempt 1");
  expect(first).toContain("served: a coffee for Ann");
  expect(killed).toContain("brewing for Bob, attempt 2");
  expect(killed).toContain("served: a coffee for Bob");
  expect(ownServers).toContain("served: a coffee for Cleo");
  expect(inTypeScript).not.toContain("error");
  expect(more).toEqual([]);
});

test("every page that has its reader keep files is followed here", () => {
  expect(pages.filter(isStory).map(({ file }) => file)).toEqual(["docs/quick-start.md"]);
});

const copyExamples = () =>
  cp(join(root, "examples"), join(project.folder, "examples"), { recursive: true });

test("an example leaves nothing behind: neither its folder nor one in its user's", async () => {
  await copyExamples();
  const before = await readdir(project.folder);
  const { code, output } = await project.run(process.execPath, [
    "examples/affiliate-reconciliation/main.mjs",
  ]);
  expect(code, output).toBe(0);
  const [, folder = ""] = /^Data: in (\S+), which is removed at the end\.$/m.exec(output) ?? [];
  expect(folder).toMatch(/millrace-example-/);
  await expect(stat(folder)).rejects.toThrow("ENOENT");
  expect(await readdir(project.folder)).toEqual(before);
});

test("one-time passwords beside reports: with two Redis servers each kind has its own", async () => {
  const folder = "examples/otp-beside-reports";
  await copyExamples();
  const second = await startRedis();
  try {
    const { code, output } = await project.run(process.execPath, [`${folder}/main.mjs`], {
      DATABASE_URL: database.url,
      REDIS_URL_HIGH: redis.url,
      REDIS_URL_LOW: second.url,
      PASSWORDS: "60", // long enough for a Redis that was once too slow to be asked again
    });
    expect(code, output).toBe(0);
    expect(output).toContain("over two Redis servers");
    expect(await second.command("KEYS", "millrace:*:epoch")).not.toEqual([]);
    expect(await redis.command("KEYS", "millrace:*:epoch")).not.toEqual([]);
  } finally {
    await second.drop();
  }
});

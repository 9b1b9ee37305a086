// What Node prints of an error that nobody catches: the sentence to read, and the caller's own lines.

import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { fromCaller, MillraceError } from "../../src/domain/errors.ts";
import { createDatabase } from "../support/postgres.ts";
import { createUserProject, type UserProject } from "../support/user-project.ts";

let project: UserProject;
let database: Awaited<ReturnType<typeof createDatabase>>;

beforeAll(async () => {
  project = await createUserProject();
  database = await createDatabase();
  await mkdir(join(project.folder, "app"));
});
afterAll(async () => {
  await project.remove();
  await database.drop();
});

async function run(text: string, databaseUrl: string) {
  const program = join(project.folder, "app", "main.mjs");
  await writeFile(program, `import { defineJob, Millrace } from "millrace";\n${text}\n`);
  const { code, output } = await project.run(process.execPath, [program], {
    ...{ DATABASE_URL: databaseUrl, LOG_LEVEL: "silent" },
  });
  expect(code).toBe(1);
  return output;
}

const frames = (output: string) => output.split("\n").filter((line) => /^ {4}at /.test(line));

test("a wrong DATABASE_URL is one sentence and the line of the program that connects", async () => {
  const output = await run("await Millrace.connect();", "postgres://me:hush@127.0.0.1:1/none");
  expect(output).toMatch(
    /^MillraceError: PostgreSQL cannot be reached: connect ECONNREFUSED 127\.0\.0\.1:1$/m,
  );
  expect(frames(output)).toEqual([expect.stringMatching(/app\/main\.mjs:2:\d+/)]);
  expect(output).not.toContain("hush");
});

test("a result that nobody makes says which job waits, how long it was, and what to ask", async () => {
  const output = await run(
    `const millrace = await Millrace.connect();
const { id } = await millrace.enqueue(defineJob({ type: "nobody" }), {});
await millrace.result(id, { timeoutMs: 1 }).finally(() => millrace.stop());`,
    database.url,
  );
  expect(output).toMatch(
    /^MillraceError: Job (\S+) is still ready after 1 ms\. Is a worker running\? npx millrace explain \1 says\.$/m,
  );
  for (const frame of frames(output)) expect(frame).toContain("app/main.mjs");
});

test("where everybody is inside, the stack stays as it is", () => {
  const error = new MillraceError("TIMEOUT");
  const inside = `MillraceError: x\n    at f (${new URL("../../src/a.ts", import.meta.url).href}:1:1)`;
  error.stack = inside;
  expect(fromCaller(error).stack).toBe(inside);
  expect(fromCaller(new Error("another"))).toBeInstanceOf(Error);
});

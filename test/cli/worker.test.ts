import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { defineJob, Millrace } from "../../src/index.ts";
import { CommandStage, jsonLines, runHere } from "../support/command-line.ts";
import { until } from "../support/until.ts";

const stage = new CommandStage("file");
const root = join(import.meta.dirname, "..", "..");
let folder: string;
let millrace: Millrace;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "millrace-worker-"));
  await mkdir(join(folder, "node_modules"));
  await symlink(root, join(folder, "node_modules", "millrace"));
  millrace = await Millrace.connect({ databaseUrl: stage.url, logLevel: "silent" });
});
afterAll(async () => {
  await millrace.stop();
  await rm(folder, { recursive: true, force: true });
});

const write = (name: string, text: string) => writeFile(join(folder, name), text);
const worker = (...args: string[]) => stage.start(["worker", ...args], {}, { cwd: folder });
const run = async (type: string, payload: unknown, queue = "default") => {
  const { id } = await millrace.enqueue(defineJob({ type, queue }), payload);
  return millrace.result(id, { timeoutMs: 60_000 });
};

test("runs what TypeScript and CommonJS modules export, and the built-in jobs", async () => {
  // An enum is more than types, and ./words.js is a .ts file: both are beyond Node's own stripping.
  await write("words.ts", `export enum Word { Hello = "hello" }\n`);
  await write(
    "jobs.ts",
    `import { defineJob, NonRetryableError } from "millrace";
import { Word } from "./words.js";
export const greet = defineJob({ type: "greet", run: ({ log }): string => { log.info("greeting"); return Word.Hello; } });
export const elsewhere = defineJob({ type: "elsewhere" });
export default [defineJob({ type: "fail", run(): void { throw new NonRetryableError("no \\u001b[2J way"); } })];
`,
  );
  await write(
    "more.cjs",
    `const { defineJob } = require("millrace");
module.exports = { add: defineJob({ type: "add", run: ({ payload }) => payload.a + payload.b }) };
`,
  );
  const started = worker("./jobs.ts", "more.cjs", "--demo", "--json", "--concurrency", "3");
  await started.said('"started"');
  const [first] = jsonLines(started.out);
  expect(first).toMatchObject({ state: "started", queues: ["default"] });
  expect(new Set(first?.types as string[])).toEqual(
    new Set(["greet", "fail", "add", "dummy", "echo"]),
  );
  expect(await run("greet", {})).toBe("hello");
  expect(await run("add", { a: 40, b: 2 })).toBe(42);
  expect(await run("echo", { back: true })).toEqual({ back: true });
  expect(await run("dummy", { ms: 1 })).toEqual({ sleptMs: 1 });
  // tsx compiles the import to a require(), so its error is of another copy of the package.
  await expect(run("fail", {})).rejects.toThrow("no");
  const [dead] = await millrace.deadLetters({ type: "fail" });
  expect(dead).toMatchObject({ attempt: 1, error: { class: "non_retryable" } });
  const { code, out, err } = await started.stop("SIGTERM");
  expect(code).toBe(0);
  expect(err).toContain('"greeting"');
  expect(jsonLines(out).at(-1)).toMatchObject({ state: "stopped", completed: 4, dead: 1 });
});

test("serves exactly the queues it is told, and lets what runs finish on Ctrl-C", async () => {
  const started = worker("--demo", "--queues", "side,way", "--concurrency", "2");
  await started.said("of queues side, way");
  expect(await run("echo", 7, "way")).toBe(7);
  const job = defineJob({ type: "dummy", queue: "side" });
  const { id } = await millrace.enqueue(job, { ms: 1_500 });
  const foreign = await millrace.enqueue(defineJob({ type: "echo", queue: "default" }), {});
  await until("it runs", async () => (await millrace.get(id))?.state === "running");
  const { code, out } = await started.stop("SIGINT");
  expect(code).toBe(0);
  expect((await millrace.get(id))?.state).toBe("completed");
  expect((await millrace.get(foreign.id))?.state).toBe("ready");
  expect(out).toContain("Stopping (1 running)");
  expect(out).toContain("Stopped after 2 jobs completed");
});

test("--watch hears every save, also those that replace the file, and of folders that come later", async () => {
  const place = join(folder, "editor");
  await mkdir(place);
  const answer = (text: string) => `export const word = ${JSON.stringify(text)};\n`;
  await writeFile(join(place, "word.mjs"), answer("0"));
  await writeFile(
    join(place, "saved.mjs"),
    `import { defineJob } from "millrace";
import { word } from "./word.mjs";
export const saved = defineJob({ type: "saved", run: () => word });
`,
  );
  const started = worker("./editor/saved.mjs", "--watch");
  expect(await run("saved", {})).toBe("0");
  const restarts = () => started.err.split("starting again.").length - 1;
  // As sed -i and many editors do: the name leads to another file each time.
  for (const text of ["1", "2", "3"]) {
    const before = restarts();
    await writeFile(join(place, "word.mjs~"), answer(text));
    await rename(join(place, "word.mjs~"), join(place, "word.mjs"));
    await until("it has started again", () => restarts() > before);
    expect(await run("saved", {})).toBe(text);
  }
  await writeFile(join(place, "word.mjs"), answer("in place"));
  expect(await resultsIn("saved", "in place")).toBe(true);
  await mkdir(join(place, "later"));
  await writeFile(join(place, "later", "new.mjs"), "");
  await started.said("editor/later/new.mjs changed");
  expect((await started.stop("SIGINT")).code).toBe(0);
});

/** A worker that is about to start again may still take the job. */
const resultsIn = (type: string, wanted: unknown) =>
  until("the new version answers", async () => (await run(type, {})) === wanted);

test("without --json a worker writes text for people only, log lines included", async () => {
  await write(
    "talk.mjs",
    `import { defineJob } from "millrace";
export const talk = defineJob({ type: "talk", run: ({ log }) => { log.info({ step: 1 }, "talking"); } });
`,
  );
  const started = worker("./talk.mjs");
  await started.said("It runs talk");
  await run("talk", {});
  const { code, out, err } = await started.stop("SIGTERM");
  expect(code).toBe(0);
  expect(err).toMatch(/^\d\d:\d\d:\d\d info {2}talking {2}.*step=1/m);
  expect(`${out}${err}`.split("\n").filter((line) => line.startsWith("{"))).toEqual([]);
});

test("--watch starts again after draining when a file changes, and outlives a broken one", async () => {
  const version = (text: string) => write("watched.js", text);
  const job = (answer: string) =>
    `const { defineJob } = require("millrace");\nexports.w = defineJob({ type: "w", run: () => ${JSON.stringify(answer)} });\n`;
  await version(job("first"));
  const started = worker("./watched.js", "--watch");
  expect(await run("w", {})).toBe("first");
  await version(`throw new Error("half written");\n`);
  await started.said("half written");
  await started.said("it starts again when a file changes");
  await version(job("second"));
  expect(await run("w", {})).toBe("second");
  const { code, out, err } = await started.stop("SIGINT");
  expect(code).toBe(0);
  expect(err).toContain("watched.js changed; starting again.");
  expect(out).toContain("Stopped after 1 job completed");
});

describe("says what to do about", () => {
  test.each([
    ["nothing.ts", "", "There is no file", "Did you mean", 3],
    ["empty.mjs", "export const x = 1;\n", "exports no job", "defineJob", 1],
    ["broken.mjs", "export const = 1;\n", "cannot be loaded", "Mend that module", 1],
    ["thrower.cjs", 'throw new Error("at \\u001b[31mload");\n', "at ·[31mload", "Mend", 1],
    ["data.json", "{}", "neither JavaScript nor TypeScript", "--help", 2],
  ])("%s", async (name, text, said, next, code) => {
    if (text === "") await write(name.replace(".ts", ".js"), "");
    else await write(name, text);
    const ended = await runHere("worker", join(folder, name));
    expect([ended.code, ended.out]).toEqual([code, ""]);
    expect(ended.err).toContain(said);
    expect(ended.err).toContain(next);
  });
});

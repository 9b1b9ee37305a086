import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { defineJob, Millrace } from "../../src/index.ts";
import { CommandStage } from "../support/command-line.ts";
import { until } from "../support/until.ts";

const stage = new CommandStage("file");
const root = join(import.meta.dirname, "..", "..");
let folder: string;
let millrace: Millrace;

beforeAll(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "millrace-init-")));
  await mkdir(join(folder, "node_modules", "@types"), { recursive: true });
  await symlink(root, join(folder, "node_modules", "millrace"));
  for (const name of ["tsx", "@types/node"])
    await symlink(join(root, "node_modules", name), join(folder, "node_modules", name));
  millrace = await Millrace.connect({ databaseUrl: stage.url, logLevel: "silent" });
});
afterAll(async () => {
  await millrace.stop();
  await rm(folder, { recursive: true, force: true });
});

/** A project below the folder, so that it finds the packages there. */
async function createProject(name: string, manifest: object): Promise<string> {
  const project = join(folder, name);
  await mkdir(project);
  await writeFile(join(project, "package.json"), JSON.stringify(manifest));
  return project;
}

const init = (cwd: string, ...args: string[]) => stage.run(["init", ...args], {}, { cwd });

function start(cwd: string, args: string[]) {
  const env = { PATH: process.env.PATH, DATABASE_URL: stage.url, LOG_LEVEL: "warn" };
  const child = spawn(process.execPath, args, { cwd, env });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (chunk) => {
      output += chunk;
    });
  const closed = once(child, "close");
  return { child, closed, output: () => output };
}

async function runWorker(project: string, args: string[], name: string): Promise<void> {
  const worker = start(project, args);
  try {
    await until("the worker says so", () => worker.output().includes("Working"));
    const hello = defineJob({ type: "hello", queue: "greetings" });
    const { id } = await millrace.enqueue(hello, { name });
    expect(await millrace.result(id)).toBe(`Hello, ${name}!`);
    worker.child.kill("SIGINT");
    await worker.closed;
    expect(worker.child.exitCode, worker.output()).toBe(0);
  } finally {
    worker.child.kill("SIGKILL");
  }
}

describe.each([
  ["modules in JavaScript", { type: "module" }, [], "js", [], true],
  ["CommonJS in JavaScript", {}, ["--js"], "js", [], false],
  [
    "modules in TypeScript",
    { type: "module", devDependencies: { tsx: "4" } },
    [],
    "ts",
    ["tsx"],
    false,
  ],
  ["CommonJS in TypeScript", {}, ["--ts"], "ts", ["tsx"], true],
])("a project of %s", (name, manifest, args, type, loader, runsWorker) => {
  test("gets a job, a worker and a test that run", async () => {
    const project = await createProject(name, manifest);
    const { code, out } = await init(project, ...args);
    expect(code).toBe(0);
    const files = [`hello.${type}`, `hello.test.${type}`, `worker.${type}`];
    expect(new Set(await readdir(join(project, "jobs")))).toEqual(new Set(files));
    for (const file of files) expect(out).toContain(`  jobs/${file}\n`);
    // From a clone it is the clone's folder that is installed.
    expect(out).toContain(`npm install ${relative(project, root)}`);
    expect(out.includes("npm install --save-dev typescript @types/node")).toBe(type === "ts");
    const flags = loader.flatMap((one) => ["--import", one]);

    const tests = start(project, [...flags, "--test", `jobs/hello.test.${type}`]);
    await tests.closed;
    expect(tests.child.exitCode, tests.output()).toBe(0);
    if (runsWorker) await runWorker(project, [...flags, `jobs/worker.${type}`], name);
  });
});

test("overwrites nothing, and asks for a project", async () => {
  const project = await createProject("mine", { type: "module", dependencies: { millrace: "1" } });
  await mkdir(join(project, "jobs"));
  await writeFile(join(project, "jobs", "worker.js"), "// mine\n");
  const refused = await init(project);
  expect(refused.code).toBe(4);
  expect(refused.err).toContain("jobs/worker.js is there already; nothing was written.");
  expect(await readdir(join(project, "jobs"))).toEqual(["worker.js"]);
  expect(await readFile(join(project, "jobs", "worker.js"), "utf8")).toBe("// mine\n");
  const elsewhere = await init(project, "--dir", "src/tasks", "--json");
  expect(JSON.parse(elsewhere.out).written[0]).toBe("src/tasks/hello.js");
  expect(elsewhere.out).not.toContain("npm install");
  const empty = join(folder, "empty");
  await mkdir(empty);
  const nowhere = await init(empty);
  const advice = `npm init -y && npm install ${relative(empty, root)}`;
  expect([nowhere.code, nowhere.err]).toEqual([3, expect.stringContaining(advice)]);
  expect((await init(project, "--ts", "--js")).code).toBe(2);
});

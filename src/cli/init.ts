import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { type Command, CommandError, textOption, UsageError, type Values } from "./command.ts";
import { exitCodes } from "./exit-codes.ts";
import { type Project, projectFiles } from "./init-templates.ts";
import type { Terminal } from "./terminal.ts";
import { plain } from "./text.ts";

const help = `millrace init – a first job, a worker and a test in your project

Usage: millrace init [options]

Run it where your package.json is. Writes three small files into a folder and changes nothing else; a
file that is there already is never overwritten. TypeScript if the project uses it (tsconfig.json, or
typescript among its packages), modules or CommonJS as package.json says.

Options:
  --dir <folder>     where to write (default: jobs)
  --ts, --js         TypeScript, or JavaScript, whatever the project uses
  --json             one JSON object instead of text
  -h, --help         this text

Examples:
  npx millrace init
  npx millrace init --dir src/jobs --js
`;

export const init: Command = {
  name: "init",
  summary: "write a first job, a worker and a test into your project",
  help,
  options: {
    dir: { type: "string" },
    ts: { type: "boolean" },
    js: { type: "boolean" },
    json: { type: "boolean" },
  },
  async run(values: Values, terminal: Terminal): Promise<number> {
    if (values.ts === true && values.js === true)
      throw new UsageError("--ts and --js exclude each other.");
    const dir = textOption(values, "dir") ?? "jobs";
    const manifest = await readManifest();
    const project = projectOf(manifest, values);
    const files = projectFiles(project).map(({ name, text }) => ({ path: join(dir, name), text }));
    refuseOverwriting(files.map(({ path }) => path));
    await mkdir(dir, { recursive: true });
    // "wx": whoever was quicker keeps what he wrote.
    for (const { path, text } of files) await writeFile(path, text, { flag: "wx" });
    const written = files.map(({ path }) => path);
    const next = nextSteps(project, manifest, written);
    if (values.json === true) terminal.print(JSON.stringify({ written, next }));
    else terminal.print(inWords(written, next, terminal));
    return 0;
  },
};

interface Manifest {
  readonly type?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

async function readManifest(): Promise<Manifest> {
  let text: string;
  try {
    text = await readFile("package.json", "utf8");
  } catch {
    throw new CommandError(
      `There is no package.json in ${plain(resolve("."))}.`,
      `Go to your project's folder, or begin one: npm init -y && npm install ${packageName()}`,
      exitCodes.notFound,
    );
  }
  try {
    const manifest: unknown = JSON.parse(text);
    if (typeof manifest === "object" && manifest !== null) return manifest;
  } catch {
    // Told below.
  }
  throw new CommandError("package.json is not JSON.", "Mend it first.");
}

/** What npm is to install: this package's folder where it runs from a clone of the repository. */
function packageName(): string {
  const folder = fileURLToPath(new URL("../..", import.meta.url));
  if (folder.split(sep).includes("node_modules")) return "millrace";
  const path = relative(".", folder);
  // Without the dot npm would look for a repository of that name.
  return path.startsWith("..") ? path : `./${path}`;
}

const has = (manifest: Manifest, name: string): boolean =>
  name in { ...manifest.dependencies, ...manifest.devDependencies };

function projectOf(manifest: Manifest, values: Values): Project {
  const uses = existsSync("tsconfig.json") || has(manifest, "typescript") || has(manifest, "tsx");
  const typeScript = values.ts === true || (values.js !== true && uses);
  return { typeScript, modules: manifest.type === "module" };
}

function refuseOverwriting(paths: readonly string[]): void {
  const there = paths.filter((path) => existsSync(path));
  if (there.length === 0) return;
  throw new CommandError(
    `${there.map(plain).join(" and ")} ${there.length === 1 ? "is" : "are"} there already; nothing was written.`,
    "Choose another folder with --dir.",
    exitCodes.refused,
  );
}

interface Step {
  readonly command: string;
  readonly what: string;
}

function nextSteps(
  { typeScript }: Project,
  manifest: Manifest,
  [job = "", worker = "", test = ""]: readonly string[],
): Step[] {
  const missing = [
    ...(has(manifest, "millrace") ? [] : [packageName()]),
    ...(typeScript && !has(manifest, "tsx") ? ["tsx"] : []),
  ];
  const types = typeScript
    ? ["typescript", "@types/node"].filter((name) => !has(manifest, name))
    : [];
  const run = typeScript ? "npx tsx" : "node";
  return [
    ...(missing.length === 0
      ? []
      : [{ command: `npm install ${missing.join(" ")}`, what: "what the files import" }]),
    ...(types.length === 0
      ? []
      : [{ command: `npm install --save-dev ${types.join(" ")}`, what: "types, for tsc" }]),
    { command: `${run} --test ${test}`, what: "the test" },
    { command: `${run} ${worker}`, what: "the worker; leave it running" },
    {
      command: `npx millrace enqueue hello '{"name":"you"}' --queue greetings --wait 30s`,
      what: "a job, from another terminal",
    },
    {
      command: `npx millrace worker ${job} --watch`,
      what: "or a worker that starts again on changes",
    },
  ];
}

function inWords(written: readonly string[], next: readonly Step[], terminal: Terminal): string {
  const wrote = written.map((path) => `  ${path}`).join("\n");
  const steps = next.map(
    ({ command, what }) => `  ${terminal.style("bold", command)}\n      ${what}`,
  );
  const ignore = "Put .millrace/ into .gitignore: the embedded database lives there.";
  return `Wrote\n${wrote}\n\nNext\n${steps.join("\n")}\n\n${ignore}`;
}

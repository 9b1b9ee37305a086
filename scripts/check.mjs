// `npm run check`: everything that can be said about the code without running its tests.
import { spawn } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { repositoryRoot } from "./checker.mjs";
import { listFiles } from "./source-files.mjs";

const atOnce = 2;
const bin = (name) => join("node_modules", ...name.split("/"));

const steps = [
  { name: "format and lint", run: [bin("@biomejs/biome/bin/biome"), "check", "."] },
  { name: "types", run: [bin("typescript/bin/tsc"), "--noEmit", "-p", "tsconfig.json"] },
  {
    name: "dashboard types",
    run: [bin("typescript/bin/tsc"), "--noEmit", "-p", "dashboard/tsconfig.json"],
  },
  { name: "unused code", run: [bin("knip/bin/knip.js"), "--no-progress"] },
  { name: "imports", run: ["scripts/check-imports.mjs"] },
  { name: "house rules", run: ["scripts/check-rules.mjs"] },
  { name: "lockfile", run: ["scripts/lockfile.mjs"] },
  { name: "package", run: ["scripts/check-package.mjs"], needsBuild: true },
  { name: "dashboard size", run: ["scripts/check-dashboard.mjs"], needsBuild: true },
  { name: "http reference", run: ["scripts/http-reference.mjs", "--check"], needsBuild: true },
  { name: "schema dump", run: ["scripts/dump-schema.mjs", "--check"], needsBuild: true },
];

const help = `Usage: npm run check -- [options]

Runs the checks, prints what fails, and exits with 1 when anything did:
${steps.map(({ name }) => `  ${name}`).join("\n")}

  --only NAME   one check; may be given several times
  --verbose     print the output of what passes, too
  --help        this text
`;

async function main() {
  const { values } = parseArgs({
    options: {
      only: { type: "string", multiple: true },
      verbose: { type: "boolean" },
      help: { type: "boolean", short: "h" },
    },
  });
  if (values.help) return process.stdout.write(help);
  const chosen = steps.filter(({ name }) => values.only?.includes(name) ?? true);
  const unknown = values.only?.find((name) => !steps.some((step) => step.name === name));
  if (unknown !== undefined) throw new Error(`There is no check "${unknown}"; see --help.`);

  const results = await runAll(chosen, (result) => report(result, values.verbose));
  const failed = results.filter(({ ok }) => !ok).map(({ name }) => name);
  const passed = results.length - failed.length;
  console.log(`\n${passed} of ${results.length} checks passed`);
  if (failed.length > 0) console.log(`failed: ${failed.join(", ")}`);
  process.exitCode = failed.length > 0 ? 1 : 0;
}

/** Reports in the order of the list, whichever ends first. What needs dist/ waits for one build. */
async function runAll(chosen, onResult) {
  const inTurn = limiter(atOnce);
  let build;
  const afterBuild = async (step) => {
    build ??= isBuilt() ? { ok: true } : run({ name: "build", run: ["scripts/build.mjs"] });
    const built = await build;
    return built.ok ? run(step) : { ...built, name: step.name };
  };
  const started = chosen.map((step) =>
    inTurn(() => (step.needsBuild ? afterBuild(step) : run(step))),
  );
  const results = [];
  for (const result of started) {
    results.push(await result);
    onResult(results.at(-1));
  }
  return results;
}

function limiter(slots) {
  const waiting = [];
  let free = slots;
  return async (task) => {
    if (free > 0) free -= 1;
    else await new Promise((resolve) => waiting.push(resolve));
    try {
      return await task();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else free += 1;
    }
  };
}

function run({ name, run: [script, ...args] }) {
  const started = performance.now();
  const child = spawn(process.execPath, [script, ...args], {
    cwd: repositoryRoot,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (chunk) => {
      output += chunk;
    });
  }
  return new Promise((resolve) => {
    const end = (ok) => resolve({ name, ok, output, ms: performance.now() - started });
    child.on("error", (error) => {
      output += `${error.message}\n`;
      end(false);
    });
    child.on("close", (code) => end(code === 0));
  });
}

function report({ name, ok, output, ms }, verbose) {
  const seconds = `${(ms / 1000).toFixed(1)} s`;
  console.log(`${ok ? "pass" : "FAIL"}  ${name} (${seconds})`);
  if ((!ok || verbose) && output.trim() !== "") console.log(output.trim().replace(/^/gm, "      "));
}

function isBuilt() {
  const built = join(repositoryRoot, "dist", "index.js");
  const page = join(repositoryRoot, "dist", "dashboard", "index.html");
  if (!existsSync(built) || !existsSync(page)) return false;
  const modified = (file) => statSync(join(repositoryRoot, file)).mtimeMs;
  const isOlder = (folder, than) =>
    listFiles(repositoryRoot, folder).every((file) => modified(file) <= statSync(than).mtimeMs);
  return isOlder("src", built) && isOlder("dashboard", page);
}

await main();

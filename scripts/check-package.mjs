// Packs the built package as npm would and lets publint and are-the-types-wrong look at it.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { repositoryRoot } from "./checker.mjs";

const folder = mkdtempSync(join(tmpdir(), "millrace-package-"));
try {
  run("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", folder]);
  const packed = join(folder, readdirSync(folder).find((name) => name.endsWith(".tgz")) ?? "");
  const tool = (path, ...args) => run(process.execPath, [join("node_modules", path), ...args]);
  tool("publint/src/cli.js", "run", packed, "--strict");
  // The package is ESM only, so that CommonJS resolution is not held against it.
  const quiet = ["--no-definitely-typed", "--no-emoji", "--format", "ascii"];
  tool("@arethetypeswrong/cli/dist/index.js", packed, "--profile", "esm-only", ...quiet);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function run(command, args) {
  const { status, error } = spawnSync(command, args, { cwd: repositoryRoot, stdio: "inherit" });
  if (error) console.error(error.message);
  if (status !== 0) process.exitCode = 1;
}

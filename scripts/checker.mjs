// The command line that every checker shares: `node scripts/<checker>.mjs [--root DIR]`.
import { realpathSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

export const repositoryRoot = dirname(dirname(fileURLToPath(import.meta.url)));

/** True when the module was started by name rather than imported. */
export const isMain = (moduleUrl) =>
  process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(moduleUrl);

/** `extra` maps a further flag to `{ help, run(root) }`, which replaces the check. */
export function runChecker(moduleUrl, purpose, check, extra = {}) {
  if (!isMain(moduleUrl)) return;
  const flags = Object.fromEntries(Object.keys(extra).map((name) => [name, { type: "boolean" }]));
  const { values } = parseArgs({
    options: { root: { type: "string" }, help: { type: "boolean", short: "h" }, ...flags },
  });
  const root = resolve(values.root ?? repositoryRoot);
  if (values.help) return console.log(helpText(moduleUrl, purpose, extra));
  const chosen = Object.keys(extra).find((name) => values[name]);
  if (chosen) return extra[chosen].run(root);
  const problems = check(root);
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) process.exitCode = 1;
}

function helpText(moduleUrl, purpose, extra) {
  const script = moduleUrl.split("/").at(-1);
  const lines = Object.entries(extra).map(([name, { help }]) => `  --${name.padEnd(15)} ${help}`);
  return [
    `Usage: node scripts/${script} [options]`,
    "",
    purpose,
    "",
    "  --root DIR        the folder to check (default: this repository)",
    ...lines,
    "  --help            this text",
  ].join("\n");
}

// Runs on Node ≥ 20 with nothing installed: installs the bench, builds Millrace, and runs the bench under
// Node ≥ 22, which two of the peers need (Node 24 comes from npm if this one is older).
import { fork, spawnSync } from "node:child_process";
import { cpSync, existsSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const bench = dirname(fileURLToPath(import.meta.url));
const root = dirname(bench);
const args = process.argv.slice(2);
const windows = process.platform === "win32";

function npm(argv, quiet) {
  const run = spawnSync(windows ? "npm.cmd" : "npm", argv, {
    cwd: root,
    stdio: quiet ? "pipe" : "inherit",
    shell: windows,
    encoding: "utf8",
  });
  if (run.status === 0) return;
  if (quiet) process.stderr.write(`${run.stdout ?? ""}${run.stderr ?? ""}`);
  console.error(`bench: npm ${argv.join(" ")} failed`);
  process.exit(run.status ?? 1);
}

function installed() {
  const marker = join(bench, "node_modules", ".package-lock.json");
  if (!existsSync(marker)) return false;
  const present = JSON.parse(readFileSync(marker, "utf8")).packages;
  const wanted = JSON.parse(readFileSync(join(bench, "package-lock.json"), "utf8")).packages;
  return Object.entries(wanted).every(
    ([path, entry]) => path === "" || entry.optional || present[path]?.version === entry.version,
  );
}

function modernNode() {
  if (Number(process.versions.node.split(".")[0]) >= 22) return process.execPath;
  const name = `node-${process.platform === "win32" ? "win" : process.platform}-${process.arch}`;
  try {
    const folder = dirname(createRequire(import.meta.url).resolve(`${name}/package.json`));
    return join(folder, "bin", windows ? "node.exe" : "node");
  } catch {
    console.error(
      `bench: there is no Node 24 for this platform on npm (${name}); run it with Node 22 or newer`,
    );
    process.exit(1);
  }
}

const help = args.includes("--help") || args.includes("-h");
if (!help) {
  if (!installed()) npm(["ci", "--prefix", "bench", "--no-audit", "--no-fund"], true);
  if (!args.includes("--no-build")) {
    if (!existsSync(join(root, "node_modules"))) npm(["ci", "--no-audit", "--no-fund"], true);
    npm(["run", "--silent", "build"], false);
  }
  // A copy, so that a rebuild in the middle of a run changes nothing.
  rmSync(join(bench, "dist"), { recursive: true, force: true });
  if (existsSync(join(root, "dist")))
    cpSync(join(root, "dist"), join(bench, "dist"), { recursive: true });
}

// `npm run bench -- queue` is about the standalone queue, `npm run bench -- http` about the service.
const isOwn = args[0] === "queue" || args[0] === "http";
const [program, own] = isOwn ? [`${args[0]}/main.mjs`, args.slice(1)] : ["main.mjs", args];
const child = fork(join(bench, program), own, {
  execPath: help ? process.execPath : modernNode(),
  stdio: ["inherit", "inherit", "inherit", "ipc"],
});
// Ctrl-C reaches the child by itself; it cleans up and ends, and then so do we.
process.on("SIGINT", () => {});
process.on("SIGTERM", () => child.kill("SIGTERM"));
child.on("exit", (code, signal) => process.exit(signal ? 1 : (code ?? 1)));

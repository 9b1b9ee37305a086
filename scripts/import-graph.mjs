// Reads which file imports what, and finds cycles. No compiler is needed: the text is masked first.
import { existsSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { listFiles } from "./source-files.mjs";
import { lineAt, maskSource } from "./source-text.mjs";

const patterns = [
  { kind: "static", regex: /(?<![.\w$])(?:import|export)\b[\w$\s{},*]*?\bfrom\s*(?=["'])/g },
  { kind: "static", regex: /(?<![.\w$])import\s*(?=["'])/g },
  { kind: "dynamic", regex: /(?<![.\w$])import\s*\(\s*(?=["'`])/g },
];
const typeOnly = /^(?:import|export)\s+type\b(?!\s*(?:,|from\s*$))/;

/** Every import with a literal specifier: `{ specifier, kind, line }`, kind being static, dynamic or type. */
export function findImports(text) {
  const { code } = maskSource(text);
  const found = [];
  for (const { kind, regex } of patterns) {
    for (const match of code.matchAll(regex)) {
      const open = match.index + match[0].length;
      const close = code.indexOf(code[open], open + 1);
      const erased = kind === "static" && typeOnly.test(match[0]);
      const specifier = text.slice(open + 1, close);
      found.push({ specifier, kind: erased ? "type" : kind, line: lineAt(text, match.index) });
    }
  }
  return found.sort((a, b) => a.line - b.line);
}

/** Imports of every source file under `root/folder`; `target` is a path inside root, or null for a package. */
export function readImportGraph(root, folder) {
  if (!existsSync(join(root, folder))) return new Map();
  const graph = new Map();
  for (const file of listFiles(root, folder)) {
    if (!/\.m?[jt]sx?$/.test(file) || file.endsWith(".d.ts")) continue;
    const imports = findImports(readFileSync(join(root, file), "utf8"));
    graph.set(
      file,
      imports.map((found) => ({ ...found, target: resolveTarget(root, file, found.specifier) })),
    );
  }
  return graph;
}

/** The shortest cycle as a list of files (the first one is not repeated), or null. */
export function shortestCycle(graph) {
  let best = null;
  for (const start of graph.keys()) {
    const cycle = cycleThrough(graph, start);
    if (cycle && (best === null || cycle.length < best.length)) best = cycle;
  }
  return best;
}

function resolveTarget(root, file, specifier) {
  if (!specifier.startsWith(".")) return null;
  const path = posix.normalize(posix.join(posix.dirname(file), specifier));
  const asTypeScript = path.replace(/\.(m?)js(x?)$/, ".$1ts$2");
  return !existsSync(join(root, path)) && existsSync(join(root, asTypeScript))
    ? asTypeScript
    : path;
}

function cycleThrough(graph, start) {
  const cameFrom = new Map();
  const waiting = [start];
  for (const file of waiting) {
    for (const { target } of graph.get(file) ?? []) {
      if (target === start) return pathTo(cameFrom, start, file);
      if (target === null || !graph.has(target) || cameFrom.has(target)) continue;
      cameFrom.set(target, file);
      waiting.push(target);
    }
  }
  return null;
}

function pathTo(cameFrom, start, end) {
  const path = [end];
  while (path[0] !== start) path.unshift(cameFrom.get(path[0]));
  return path;
}

// The dashboard's first load, compressed: the page, what it names, and what those import before anything
// is shown. Pages that are fetched when they are first wanted are not part of it.
import { existsSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { gzipSync } from "node:zlib";
import { runChecker } from "./checker.mjs";
import { findImports } from "./import-graph.mjs";

export const mostBytes = 250_000;

/** Every file of the first load with its size as it travels. */
export function firstLoad(root) {
  const folder = join(root, "dist", "dashboard");
  const page = readFileSync(join(folder, "index.html"), "utf8");
  const named = [...page.matchAll(/(?:src|href)="\/([^"]+)"/g)].map(([, path]) => path);
  const waiting = ["index.html", ...named];
  const sizes = new Map();
  for (const file of waiting) {
    if (sizes.has(file) || !existsSync(join(folder, file))) continue;
    const content = readFileSync(join(folder, file));
    sizes.set(file, gzipSync(content).length);
    if (!file.endsWith(".js")) continue;
    const imports = findImports(content.toString()).filter(({ kind }) => kind === "static");
    for (const { specifier } of imports) waiting.push(posix.join(posix.dirname(file), specifier));
  }
  return sizes;
}

/** Inline code would need an exception in the content security policy. */
export function checkPage(root) {
  const page = readFileSync(join(root, "dist", "dashboard", "index.html"), "utf8");
  const inline = /<script(?![^>]*\bsrc=)[^>]*>|<style\b|\sstyle=|\son\w+=/i.exec(page);
  return inline === null
    ? []
    : [`dist/dashboard/index.html has code inside it: ${inline[0].trim()}`];
}

function checkDashboard(root) {
  const sizes = firstLoad(root);
  const all = [...sizes.values()].reduce((sum, size) => sum + size, 0);
  const problems = checkPage(root);
  console.log(`first load: ${all} bytes compressed in ${sizes.size} files, at most ${mostBytes}`);
  if (all > mostBytes)
    for (const [file, size] of sizes) problems.push(`${String(size).padStart(8)}  ${file}`);
  return problems;
}

runChecker(import.meta.url, "Checks the size of the dashboard's first load.", checkDashboard);

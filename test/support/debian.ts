// Programs from Debian's packages: installed as root, unpacked into a folder otherwise.

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, mkdir, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

export const succeeds = (command: string, args: readonly string[], cwd = tmpdir()) =>
  run(command, args, { cwd, env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" } }).then(
    () => true,
    () => false,
  );

const install = ["install", "--no-install-recommends"];

/** Test files run at the same time: whoever comes second waits for the first one's lock. */
export const installPackages = async (...packages: readonly string[]): Promise<boolean> =>
  process.getuid?.() === 0 &&
  withLists((lists) =>
    succeeds("apt-get", [
      ...lists,
      ...["-o", "DPkg::Lock::Timeout=300", ...install, "-y", ...packages],
    ]),
  );

/** Tried with the machine's package lists; where they are missing or too old, again with lists fetched for this. */
async function withLists(fetched: (lists: readonly string[]) => Promise<boolean>) {
  if (await fetched([])) return true;
  const folder = await mkdtemp(join(tmpdir(), "millrace-test-lists-"));
  await chmod(folder, 0o755); // as root, apt-get fetches as a user of its own
  for (const part of ["lists", "cache"]) await mkdir(join(folder, part));
  const lists = ["-o", `Dir::State::Lists=${folder}/lists`, "-o", `Dir::Cache=${folder}/cache`];
  try {
    return (await succeeds("apt-get", [...lists, "update"])) && (await fetched(lists));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** These packages and those they need that this machine lacks. */
async function missingPackages(lists: readonly string[], packages: readonly string[]) {
  const { stdout } = await run("apt-get", [
    ...lists,
    ...[...install, "--simulate", ...packages],
  ]).catch(() => ({ stdout: "" }));
  const named = [...stdout.matchAll(/^Inst (\S+)/gm)].map(([, name]) => String(name));
  return [...new Set([...packages, ...named])];
}

export interface Unpacked {
  readonly program: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Kept under a fixed name, so that the next run finds it. `needs`: with all that the packages need. */
export async function unpackPackages(
  name: string,
  program: string,
  packages: readonly string[],
  { needs = false } = {},
): Promise<Unpacked | undefined> {
  const folder = join(tmpdir(), `millrace-test-${name}-${process.getuid?.() ?? 0}`);
  const path = join(folder, program);
  if (!existsSync(path)) {
    const fresh = await mkdtemp(`${folder}-`);
    const isThere = await withLists(async (lists) => {
      const wanted = needs ? await missingPackages(lists, packages) : packages;
      return succeeds("apt-get", [...lists, "download", ...wanted], fresh);
    });
    if (!isThere) {
      await rm(fresh, { recursive: true });
      return undefined;
    }
    for (const file of await readdir(fresh)) await succeeds("dpkg", ["-x", file, "."], fresh);
    await rename(fresh, folder).catch(() => rm(fresh, { recursive: true })); // another was faster
  }
  if (!existsSync(path)) return undefined;
  const env = { LD_LIBRARY_PATH: (await libraryFolders(folder)).join(":") };
  return { program: path, env };
}

/** All that hold libraries, however deep: a package may keep those that only its own need in a folder below. */
async function libraryFolders(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const libraries = entries.filter(({ name }) => /\.so(\.|$)/.test(name));
  return [...new Set(libraries.map(({ parentPath }) => parentPath))];
}

// A runnable copy of the PostgreSQL binaries in a temporary folder, one per version and account.
// Others may write to that folder too, so a copy is only trusted below a folder that is ours and
// that nobody else can write to; it appears by a rename, so that it is complete or absent.

import { randomUUID } from "node:crypto";
import {
  chmod,
  constants,
  copyFile,
  lstat,
  mkdir,
  readdir,
  rename,
  rm,
  stat,
  symlink,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { MillraceError } from "../../domain/errors.ts";

export interface CopySource {
  readonly version: string;
  /** The folder with bin, lib and share. */
  readonly native: string;
  readonly links: readonly LibraryLink[];
}

/** Both paths are relative to `native`. */
export interface LibraryLink {
  readonly from: string;
  readonly to: string;
}

const partial = ".partial";
const abandonedAfterMs = 10 * 60_000;

/** Returns the folder with `initdb` and `postgres` of a copy for which `works` says yes. */
export async function copyBinaries(
  found: CopySource,
  works: (native: string) => Promise<boolean>,
): Promise<string> {
  const failures: unknown[] = [];
  for (const parent of new Set([tmpdir(), "/tmp", "/var/tmp"])) {
    try {
      const native = await copyBelow(parent, found);
      if (await works(native)) return join(native, "bin");
      failures.push(new Error(`the copy in ${native} does not run (is it mounted noexec?)`));
    } catch (error) {
      failures.push(error);
    }
  }
  throw new MillraceError(
    "EMBEDDED_UNAVAILABLE",
    `The PostgreSQL binaries in ${found.native} cannot be run, and could not be copied to a ` +
      `temporary folder: ${failures.map(String).join("; ")}`,
    { cause: new AggregateError(failures) },
  );
}

async function copyBelow(parent: string, found: CopySource): Promise<string> {
  const folder = await ownFolder(parent);
  const target = join(folder, `postgres-${found.version}-${process.platform}-${process.arch}`);
  const files = await listFiles(found.native);
  if (await isComplete(target, found, files)) return target;
  await removeAbandoned(folder);
  const fresh = `${target}-${randomUUID()}${partial}`;
  try {
    await copyTree(found, files, fresh);
    await putInPlace(fresh, target, () => isComplete(target, found, files));
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
  return target;
}

async function ownFolder(parent: string): Promise<string> {
  const uid = process.geteuid?.() ?? 0;
  const folder = join(parent, `millrace-${uid}`);
  await mkdir(folder, { mode: 0o755 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
  const found = await lstat(folder);
  if (!found.isDirectory() || found.uid !== uid || (found.mode & 0o022) !== 0) {
    throw new Error(`${folder} is not a folder of ours that only we can write to`);
  }
  await chmod(folder, 0o755);
  return folder;
}

async function listFiles(native: string): Promise<string[]> {
  const entries = await readdir(native, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && !entry.name.endsWith(".a"))
    .map((entry) => relative(native, join(entry.parentPath, entry.name)));
}

async function isComplete(target: string, found: CopySource, files: string[]) {
  const sameSize = async (file: string) => {
    const [original, copy] = await Promise.all([
      stat(join(found.native, file)),
      stat(join(target, file)),
    ]);
    if (original.size !== copy.size) throw new Error(file);
  };
  const links = found.links.map((link) => stat(join(target, link.from)));
  const results = await Promise.allSettled([...files.map(sameSize), ...links]);
  return results.every((result) => result.status === "fulfilled");
}

async function copyTree(found: CopySource, files: string[], target: string) {
  const folders = new Set(files.map((file) => dirname(file)));
  for (const folder of [".", ...folders]) await mkdir(join(target, folder), { recursive: true });
  await Promise.all(
    files.map(async (file) => {
      const copy = join(target, file);
      await copyFile(join(found.native, file), copy, constants.COPYFILE_FICLONE);
      // The sticky bit tells systemd-tmpfiles to leave an old file of a running server alone.
      await chmod(copy, file.startsWith("bin") || file.includes(".so") ? 0o1755 : 0o1644);
    }),
  );
  for (const { from, to } of found.links) {
    await symlink(relative(dirname(from), to), join(target, from));
  }
  // A strict umask must not lock out the server's account.
  const entries = await readdir(target, { recursive: true, withFileTypes: true });
  const inside = entries.filter((entry) => entry.isDirectory());
  await Promise.all(inside.map((entry) => chmod(join(entry.parentPath, entry.name), 0o755)));
  await chmod(target, 0o755);
}

async function putInPlace(fresh: string, target: string, complete: () => Promise<boolean>) {
  const isTaken = (error: NodeJS.ErrnoException) =>
    error.code === "ENOTEMPTY" || error.code === "EEXIST";
  try {
    await rename(fresh, target);
  } catch (error) {
    if (!isTaken(error as NodeJS.ErrnoException)) throw error;
    // Another process was faster, or an older copy was damaged by a cleaner of temporary files.
    if (await complete()) return;
    const damaged = `${target}-${randomUUID()}${partial}`;
    await rename(target, damaged);
    await rename(fresh, target);
    await rm(damaged, { recursive: true, force: true });
  }
}

async function removeAbandoned(folder: string) {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    if (!name.endsWith(partial)) continue;
    const found = await lstat(path).catch(() => undefined);
    if (found !== undefined && Date.now() - found.mtimeMs > abandonedAfterMs) {
      await rm(path, { recursive: true, force: true });
    }
  }
}

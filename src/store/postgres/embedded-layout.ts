// Everything of an embedded server lies in its data folder, so deleting the folder deletes it all.

import { createHash } from "node:crypto";
import { mkdir, open, readFile, realpath, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";

export interface Layout {
  readonly dataDir: string;
  /** PostgreSQL's own data directory. */
  readonly cluster: string;
  readonly pidFile: string;
  readonly password: string;
  /** Where the keeper listens, while there is one. */
  readonly state: string;
  readonly lock: string;
  readonly log: string;
  readonly previousLog: string;
  /** Stands in the command lines of server and keeper, and tells them from all other processes. */
  readonly name: string;
}

export async function openDataDir(path: string): Promise<Layout> {
  const wanted = resolve(path);
  await mkdir(dirname(wanted), { recursive: true });
  await makeFolder(wanted);
  const inner = join(await realpath(wanted), "embedded");
  if (!(await passable(wanted)) && !(await isFolder(inner))) await makeFolder(inner);
  const dataDir = (await isFolder(inner)) ? inner : dirname(inner);
  const hash = createHash("sha256").update(dataDir).digest("hex");
  return {
    dataDir,
    cluster: join(dataDir, "cluster"),
    pidFile: join(dataDir, "cluster", "postmaster.pid"),
    password: join(dataDir, "password"),
    state: join(dataDir, "server.json"),
    lock: join(dataDir, "start.lock"),
    log: join(dataDir, "server.log"),
    previousLog: join(dataDir, "server.log.1"),
    name: `millrace-${hash.slice(0, 12)}`,
  };
}

// As root the server's account has to pass through; what is secret in there is protected itself.
async function makeFolder(path: string): Promise<void> {
  const mode = process.geteuid?.() === 0 ? 0o711 : 0o700;
  await mkdir(path, { mode }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
}

/** A folder of the user's that only root may enter stays as it is: the server gets one of its own inside. */
async function passable(path: string): Promise<boolean> {
  if (process.geteuid?.() !== 0) return true;
  const { mode, uid } = await stat(path);
  return uid !== 0 || (mode & 0o001) !== 0;
}

const isFolder = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );

export async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** A file or folder that was created or renamed survives a power cut only after this. */
export async function syncToDisk(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

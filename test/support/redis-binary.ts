// redis-server: the one on the PATH; else installed (as root, on Debian) or unpacked (not as root).

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rename } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

export interface RedisBinary {
  readonly command: string;
  /** What the program must believe it was called. */
  readonly argv0?: string;
  readonly env: Readonly<Record<string, string>>;
}

const run = promisify(execFile);
const succeeds = (command: string, args: readonly string[], cwd = tmpdir()) =>
  run(command, args, { cwd }).then(
    () => true,
    () => false,
  );

let found: Promise<RedisBinary> | undefined;

export function findRedis(): Promise<RedisBinary> {
  found ??= find();
  return found;
}

async function find(): Promise<RedisBinary> {
  const onPath = { command: "redis-server", env: {} };
  if (await succeeds("redis-server", ["--version"])) return onPath;
  if (process.getuid?.() === 0 && (await succeeds("apt-get", ["install", "-y", "redis-server"])))
    return onPath;
  const unpacked = await unpack();
  if (unpacked !== undefined) return unpacked;
  throw new Error(
    "These tests need redis-server. Install Redis or Valkey so that redis-server is on the PATH, " +
      "for example with: apt-get install redis-server, or brew install redis",
  );
}

/** Kept under a fixed name, so that the next run finds it. */
async function unpack(): Promise<RedisBinary | undefined> {
  const folder = join(tmpdir(), `millrace-test-redis-${process.getuid?.() ?? 0}`);
  // redis-check-rdb is the same program; redis-server itself is in a package of its own, with a service.
  const command = join(folder, "usr/bin/redis-check-rdb");
  if (!existsSync(command)) {
    const fresh = await mkdtemp(`${folder}-`);
    const packages = ["redis-tools", "libjemalloc2", "liblzf1"];
    if (!(await succeeds("apt-get", ["download", ...packages], fresh))) return undefined;
    for (const file of await readdir(fresh)) await succeeds("dpkg", ["-x", file, "."], fresh);
    await rename(fresh, folder).catch(() => {}); // another process was faster
  }
  if (!existsSync(command)) return undefined;
  await mkdir(join(folder, "usr/lib"), { recursive: true });
  const libraries = (await readdir(join(folder, "usr/lib"))).map((name) =>
    join(folder, "usr/lib", name),
  );
  return { command, argv0: "redis-server", env: { LD_LIBRARY_PATH: libraries.join(":") } };
}

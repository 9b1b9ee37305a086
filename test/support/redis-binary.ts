// redis-server: the one on the PATH; else installed (as root, on Debian) or unpacked (not as root).

import { installPackages, succeeds, unpackPackages } from "./debian.ts";

export interface RedisBinary {
  readonly command: string;
  /** What the program must believe it was called. */
  readonly argv0?: string;
  readonly env: Readonly<Record<string, string>>;
}

let found: Promise<RedisBinary> | undefined;

export function findRedis(): Promise<RedisBinary> {
  found ??= find();
  return found;
}

async function find(): Promise<RedisBinary> {
  const onPath = { command: "redis-server", env: {} };
  if (await succeeds("redis-server", ["--version"])) return onPath;
  if (await installPackages("redis-server")) return onPath;
  const unpacked = await unpack();
  if (unpacked !== undefined) return unpacked;
  throw new Error(
    "These tests need redis-server. Install Redis or Valkey so that redis-server is on the PATH, " +
      "for example with: apt-get install redis-server, or brew install redis",
  );
}

// redis-check-rdb is the same program; redis-server itself is in a package of its own, with a service.
async function unpack(): Promise<RedisBinary | undefined> {
  const packages = ["redis-tools", "libjemalloc2", "liblzf1"];
  const unpacked = await unpackPackages("redis", "usr/bin/redis-check-rdb", packages);
  if (unpacked === undefined) return undefined;
  return { command: unpacked.program, argv0: "redis-server", env: unpacked.env };
}

// The built package in a project that has not installed the optional @redis/client.

import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const root = join(import.meta.dirname, "..", "..");

const program = `
import { createQueue } from "./dist/queue.js";
const queue = await createQueue({ redisUrl: "redis://127.0.0.1:1" });
await queue.enqueue("served");
const { job } = await queue.dequeue();
const { redis_active } = await queue.snapshot();
console.log(JSON.stringify({ job, redis_active }));
`;

it("serves from memory, and warns once", async () => {
  const folder = await mkdtemp(join(tmpdir(), "millrace-no-redis-"));
  try {
    await cp(join(root, "dist"), join(folder, "dist"), { recursive: true });
    await cp(join(root, "package.json"), join(folder, "package.json"));
    await mkdir(join(folder, "node_modules"));
    await symlink(join(root, "node_modules", "pino"), join(folder, "node_modules", "pino"));
    await writeFile(join(folder, "program.mjs"), program);
    const env = { PATH: process.env.PATH };
    const { stdout } = await promisify(execFile)(process.execPath, ["program.mjs"], {
      cwd: folder,
      env,
    });
    const lines = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines.filter(({ level }) => level >= 40)).toMatchObject([
      { msg: "queue.degraded", queue: "memory", err: { code: "REDIS_CLIENT_MISSING" } },
    ]);
    expect(lines).toContainEqual({ job: "served", redis_active: false });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

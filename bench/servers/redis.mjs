import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import { sleep } from "../clock.mjs";
import { cpuSecondsOf } from "./cpu.mjs";
import { freePort, keep, temporaryFolder, unprivileged } from "./server.mjs";

const succeeds = (command, args, options) =>
  spawnSync(command, args, { stdio: "ignore", ...options }).status === 0;

// A machine's package lists may be missing or too old.
function installAsRoot() {
  const install = () => succeeds("apt-get", ["install", "-y", "redis-server"]);
  return install() || (succeeds("apt-get", ["update"]) && install());
}

function findBinary(folder) {
  if (succeeds("redis-server", ["--version"])) return { command: "redis-server", env: {} };
  if (process.getuid?.() === 0 && installAsRoot()) return { command: "redis-server", env: {} };
  // Without root: unpack the packages beside the data.
  const unpacked = join(folder, "unpacked");
  mkdirSync(unpacked);
  succeeds("apt-get", ["download", "redis-tools", "libjemalloc2", "liblzf1"], { cwd: unpacked });
  for (const file of readdirSync(unpacked)) succeeds("dpkg", ["-x", file, "."], { cwd: unpacked });
  const command = join(unpacked, "usr/bin/redis-check-rdb"); // redis-server is the same program
  if (!existsSync(command))
    throw new Error("bench: no redis-server here, and none could be fetched with apt-get");
  const libraries = readdirSync(join(unpacked, "usr/lib")).map((name) =>
    join(unpacked, "usr/lib", name),
  );
  return { command, argv0: "redis-server", env: { LD_LIBRARY_PATH: libraries.join(":") } };
}

async function waitUntilReady(url) {
  for (let attempt = 0; attempt < 100; attempt++) {
    const client = new Redis(url, { lazyConnect: true, retryStrategy: null });
    client.on("error", () => {});
    const answer = await client
      .connect()
      .then(() => client.info("server"))
      .catch(() => null);
    client.disconnect();
    if (answer) return /redis_version:(\S+)/.exec(answer)?.[1];
    await sleep(50);
  }
  throw new Error("bench: Redis did not start");
}

export async function startRedis({ appendOnly }) {
  const owner = unprivileged();
  const folder = temporaryFolder("redis", owner);
  const port = await freePort();
  const { command, env, argv0 } = findBinary(folder);
  const persistence = appendOnly
    ? ["--appendonly", "yes", "--appendfsync", "everysec"]
    : ["--appendonly", "no"];
  const args = [
    "--port",
    String(port),
    "--bind",
    "127.0.0.1",
    "--dir",
    folder,
    "--save",
    "",
    ...persistence,
  ];
  const server = await keep({ command, argv0, args, folder, env, ...owner, stopSignal: "SIGKILL" });
  const url = `redis://127.0.0.1:${port}`;
  const version = await waitUntilReady(url);
  return {
    url,
    version,
    cpuSeconds: () => cpuSecondsOf(server.pid),
    pause: () => process.kill(server.pid, "SIGSTOP"),
    resume: () => process.kill(server.pid, "SIGCONT"),
    kill: server.kill,
    async restart() {
      await server.start();
      await waitUntilReady(url);
    },
    stop: server.stop,
  };
}

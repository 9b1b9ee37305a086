import { fork, spawnSync } from "node:child_process";
import { chownSync, mkdtempSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const keeper = fileURLToPath(new URL("./keeper.mjs", import.meta.url));

export function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.on("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

// Servers refuse to run as root (PostgreSQL) or should not: then they run as somebody who may do nothing.
export function unprivileged() {
  if (process.getuid?.() !== 0) return {};
  for (const user of ["postgres", "nobody"]) {
    const uid = Number(spawnSync("id", ["-u", user], { encoding: "utf8" }).stdout);
    const gid = Number(spawnSync("id", ["-g", user], { encoding: "utf8" }).stdout);
    if (uid > 0) return { uid, gid };
  }
  throw new Error(
    "bench: running as root, and there is no user postgres or nobody to run servers as",
  );
}

export function temporaryFolder(name, owner) {
  const folder = mkdtempSync(join(tmpdir(), `millrace-bench-${name}-`));
  if (owner.uid !== undefined) chownSync(folder, owner.uid, owner.gid);
  return folder;
}

// Starts a server under its keeper; resolves with its process id, which changes with kill() and start(), and
// with stop().
export async function keep(options) {
  const child = fork(keeper, [JSON.stringify(options)], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const { pid } = await answerOf(child);
  const server = {
    pid,
    async kill() {
      child.send("kill");
      await answerOf(child);
    },
    async start() {
      child.send("start");
      server.pid = (await answerOf(child)).pid;
    },
    stop: () => stopKeeper(child),
  };
  return server;
}

function answerOf(child) {
  return new Promise((resolve, reject) => {
    child.once("message", (message) => {
      child.off("error", reject);
      if (message.failed) reject(new Error(message.failed));
      else resolve(message);
    });
    child.once("error", reject);
  });
}

function stopKeeper(child) {
  if (child.exitCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    child.once("exit", resolve);
    if (child.connected) child.disconnect();
  });
}

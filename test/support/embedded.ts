// Processes that hold an embedded server, and what can be seen of that server from outside.

import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import pg from "pg";
import { inspectProcess } from "../../src/store/postgres/embedded-process.ts";
import { until } from "./until.ts";

export interface HolderOptions {
  readonly binariesPackage?: string;
  /** The folder with dist and node_modules; this checkout unless told. */
  readonly checkout?: string;
  readonly node?: string;
  readonly user?: { readonly uid: number; readonly gid: number };
  readonly env?: Readonly<Record<string, string>>;
}

export interface Opened {
  readonly url: string;
  readonly version: string;
  readonly joined: boolean;
  readonly milliseconds: number;
  readonly code?: string;
  readonly message?: string;
}

const here = join(import.meta.dirname, "..", "..");

export class Holder {
  readonly child: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  readonly #exited: Promise<unknown>;

  constructor(dataDir: string, options: HolderOptions = {}) {
    const script = join(options.checkout ?? here, "test/processes/embedded-holder.mjs");
    const args = [script, dataDir, ...(options.binariesPackage ? [options.binariesPackage] : [])];
    const spawning: SpawnOptions = { ...options.user, stdio: ["pipe", "pipe", "inherit"] };
    if (options.env !== undefined) spawning.env = options.env;
    this.child = spawn(options.node ?? process.execPath, args, { ...spawning, cwd: "/" });
    if (this.child.stdout === null) throw new Error("the holder has no output");
    this.#lines = createInterface({ input: this.child.stdout })[Symbol.asyncIterator]();
    this.#exited = once(this.child, "exit");
  }

  /** What the process says when it has opened the server, or failed to. */
  async opened(): Promise<Opened> {
    const line = await this.#lines.next();
    if (line.done) throw new Error("the holder ended without a word");
    return JSON.parse(line.value);
  }

  async stop() {
    this.child.stdin?.write("stop\n");
    await this.#exited;
  }

  async kill() {
    this.child.kill("SIGKILL");
    await this.#exited;
  }
}

/** A folder in which an embedded server may be started; cleaned up whatever the test did. */
export class Workplace {
  readonly root: string;
  readonly dataDir: string;
  readonly #holders: Holder[] = [];

  private constructor(root: string) {
    this.root = root;
    this.dataDir = join(root, "data");
  }

  /** Others may enter the folder with mode 755 (the default), and only its owner with 700. */
  static async create(mode = 0o755): Promise<Workplace> {
    const root = await mkdtemp(join(tmpdir(), "millrace-embedded-"));
    await chmod(root, mode);
    return new Workplace(root);
  }

  hold(options: HolderOptions = {}): Holder {
    const holder = new Holder(this.dataDir, options);
    this.#holders.push(holder);
    return holder;
  }

  async postmasterPid(): Promise<number | undefined> {
    const text = await readFile(join(this.dataDir, "cluster/postmaster.pid"), "utf8").catch(
      () => "",
    );
    const pid = Number.parseInt(text, 10);
    return pid > 0 && (await inspectProcess(pid)) !== undefined ? pid : undefined;
  }

  async keeperPid(): Promise<number | undefined> {
    const text = await readFile(join(this.dataDir, "server.json"), "utf8").catch(() => "{}");
    const { pid } = JSON.parse(text);
    return pid > 0 && (await inspectProcess(pid)) !== undefined ? pid : undefined;
  }

  async isStopped(): Promise<boolean> {
    return (await this.postmasterPid()) === undefined && (await this.keeperPid()) === undefined;
  }

  async kill(name: "keeperPid" | "postmasterPid") {
    const pid = await this[name]();
    if (pid === undefined) throw new Error(`there is no ${name}`);
    process.kill(pid, "SIGKILL");
    await until(`${name} is dead`, async () => (await inspectProcess(pid)) === undefined);
  }

  async cleanUp() {
    for (const holder of this.#holders) {
      if (holder.child.exitCode === null && holder.child.signalCode === null) await holder.kill();
    }
    await until("the server has stopped", () => this.isStopped());
    await rm(this.root, { recursive: true, force: true });
  }
}

export async function ask<T extends object>(url: string, sql: string): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => undefined);
  await client.connect();
  try {
    const { rows } = await client.query(sql);
    return rows[0];
  } finally {
    await client.end();
  }
}

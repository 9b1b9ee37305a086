// Private Redis servers for tests. A server and its data go with the process that started it, whatever
// ends that process: a shell waits for the end of a pipe that only that process holds.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient, ErrorReply } from "@redis/client";
import { freePort } from "./free-port.ts";
import { findRedis, type RedisBinary } from "./redis-binary.ts";
import { until } from "./until.ts";

export interface RedisServerOptions {
  /** Every acknowledged write survives a kill. */
  readonly durable?: boolean;
  /** Commands this server shall not know, as an older version would not. */
  readonly hidden?: readonly string[];
  readonly settings?: Readonly<Record<string, string>>;
  /** A Sentinel that watches the server on this port as the master `main`. */
  readonly sentinelOf?: number;
}

const lifeline = `
exec 3<&0; "$@" </dev/null 3<&- & server=$!
{
  read -r line <&3; trap '' TERM; kill -CONT $server; kill -KILL $server
  while kill -0 $server; do sleep 0.05; done; rm -rf "$0"
} 2>/dev/null & reader=$!
echo $server; wait $server; code=$?; kill $reader; exit $code`;

export async function startRedis(options: RedisServerOptions = {}): Promise<RedisServer> {
  const folder = await mkdtemp(join(tmpdir(), "millrace-test-redis-"));
  const server = new RedisServer(folder, await freePort(), await findRedis(), options);
  try {
    await server.prepare();
    await server.start();
    return server;
  } catch (error) {
    await server.drop();
    throw error;
  }
}

export class RedisServer {
  readonly url: string;
  readonly port: number;
  readonly #folder: string;
  readonly #binary: RedisBinary;
  readonly #options: RedisServerOptions;
  #shell: ChildProcess | undefined;
  #client: ReturnType<typeof connectTo> | undefined;
  #pid = 0;

  constructor(folder: string, port: number, binary: RedisBinary, options: RedisServerOptions) {
    this.url = `redis://127.0.0.1:${port}`;
    this.port = port;
    this.#folder = folder;
    this.#binary = binary;
    this.#options = options;
  }

  async prepare() {
    const { durable, hidden = [], settings = {}, sentinelOf } = this.#options;
    const file = (name: string) => join(this.#folder, name);
    await writeFile(file("users.acl"), "user default on nopass ~* &* +@all\n");
    const lines = [
      `port ${this.port}`,
      "bind 127.0.0.1",
      `dir ${this.#folder}`,
      ...(sentinelOf === undefined
        ? [
            'save ""',
            `aclfile ${file("users.acl")}`,
            `appendonly ${durable ? "yes" : "no"}`,
            "appendfsync always",
            ...hidden.map((command) => `rename-command ${command} ""`),
          ]
        : [
            `sentinel monitor main 127.0.0.1 ${sentinelOf} 1`,
            "sentinel down-after-milliseconds main 500",
          ]),
      ...Object.entries(settings).map(([name, value]) => `${name} ${value}`),
    ];
    await writeFile(file("redis.conf"), `${lines.join("\n")}\n`);
  }

  /** Also after a stop or a kill, with the same port and data. */
  async start() {
    const { command, argv0, env } = this.#binary;
    const mode = this.#options.sentinelOf === undefined ? [] : ["--sentinel"];
    const named =
      argv0 === undefined ? [command] : ["bash", "-c", 'exec -a "$0" "$@"', argv0, command];
    const args = [...named, join(this.#folder, "redis.conf"), ...mode];
    const shell = spawn("/bin/sh", ["-c", lifeline, this.#folder, ...args], {
      cwd: "/",
      env: { PATH: process.env.PATH, ...env },
      stdio: ["pipe", "pipe", "ignore"],
      detached: true,
    });
    this.#shell = shell;
    let output = "";
    shell.stdout.on("data", (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-8_000);
    });
    await until("Redis answers", async () => {
      if (hasExited(shell)) throw new Error(`Redis did not start:\n${output}`);
      this.#pid = Number(/^\d+/.exec(output)?.[0]);
      return (await this.isUp()) && (await this.#isOurs());
    });
  }

  async isUp(): Promise<boolean> {
    return this.command("PING").then(
      (answer) => answer === "PONG",
      () => false,
    );
  }

  /** Another one may have come to this port before it. */
  async #isOurs(): Promise<boolean> {
    const info = await this.command("INFO", "server").catch(() => "");
    return String(info).includes(`process_id:${this.#pid}\r`);
  }

  async command(...args: string[]): Promise<unknown> {
    this.#client ??= connectTo(this.url);
    try {
      return await (await this.#client).sendCommand(args);
    } catch (error) {
      if (!(error instanceof ErrorReply)) this.#client = undefined;
      throw error;
    }
  }

  /** As by a crash of the machine's power: nothing is written any more. */
  async kill() {
    const client = await this.#client?.catch(() => undefined);
    this.#client = undefined;
    client?.destroy();
    const shell = this.#shell;
    this.#shell = undefined;
    if (shell === undefined || hasExited(shell)) return;
    const exited = once(shell, "exit");
    process.kill(this.#pid, "SIGKILL");
    await exited;
  }

  async restart() {
    await this.kill();
    await this.start();
  }

  /** Accepts connections and answers nothing. */
  pause() {
    process.kill(this.#pid, "SIGSTOP");
  }

  resume() {
    process.kill(this.#pid, "SIGCONT");
  }

  /** Kills the server and deletes its data. */
  async drop() {
    const shell = this.#shell;
    if (this.#pid > 0) await this.kill();
    else shell?.stdin?.end();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

async function connectTo(url: string) {
  const client = createClient({ url, RESP: 2, socket: { reconnectStrategy: false } });
  client.on("error", () => {});
  await client.connect();
  return client;
}

function hasExited(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

// The command line: built, as a process of its own, or from the sources inside the test's process.

import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { runCommandLine } from "../../src/cli/run.ts";
import { Terminal } from "../../src/cli/terminal.ts";
import { createDatabase } from "./postgres.ts";
import { until } from "./until.ts";

export const main = join(import.meta.dirname, "..", "..", "dist", "cli", "main.js");

export interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

type Environment = Readonly<Record<string, string>>;

interface Surroundings {
  readonly cwd?: string;
  /** What it reads on standard input. */
  readonly input?: string;
}

export class CommandLine {
  readonly child: ChildProcessWithoutNullStreams;
  readonly #closed: Promise<unknown>;
  out = "";
  err = "";

  constructor(
    args: readonly string[],
    env: Environment = {},
    { cwd = "/", input }: Surroundings = {},
  ) {
    this.child = spawn(process.execPath, [main, ...args], {
      cwd,
      env: { PATH: process.env.PATH, ...env },
    });
    if (input !== undefined) this.child.stdin.end(input);
    this.child.stdout.setEncoding("utf8").on("data", (chunk) => {
      this.out += chunk;
    });
    this.child.stderr.setEncoding("utf8").on("data", (chunk) => {
      this.err += chunk;
    });
    this.#closed = once(this.child, "close");
  }

  async ended(): Promise<Ended> {
    await this.#closed;
    return { code: this.child.exitCode, out: this.out, err: this.err };
  }

  async stop(signal: NodeJS.Signals = "SIGINT"): Promise<Ended> {
    this.child.kill(signal);
    return this.ended();
  }

  /** Waits until it has said this, on either stream. */
  async said(text: string): Promise<void> {
    await until(`it says "${text}"`, () => {
      if (this.out.includes(text) || this.err.includes(text)) return true;
      if (this.child.exitCode !== null) throw new Error(`it ended:\n${this.out}${this.err}`);
      return undefined;
    });
  }
}

export function runCommand(
  args: readonly string[],
  env: Environment = {},
  surroundings: Surroundings = {},
): Promise<Ended> {
  return new CommandLine(args, env, surroundings).ended();
}

/** What a stream of a terminal is to the command line. */
class Written extends EventEmitter {
  text = "";
  readonly columns = 80;
  readonly isTTY = false;

  write(text: string): boolean {
    this.text += text;
    return true;
  }
}

/** Runs a command in this process, without the second that a new one takes. */
export async function runHere(...args: string[]): Promise<Ended> {
  const [out, err] = [new Written(), new Written()];
  const streams = [out, err] as unknown as [NodeJS.WriteStream, NodeJS.WriteStream];
  const terminal = new Terminal({ colour: false, logLevel: undefined }, ...streams);
  const code = await runCommandLine(args, terminal);
  return { code, out: out.text, err: err.text };
}

export const jsonLines = (out: string): Record<string, unknown>[] =>
  out
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line));

/**
 * A database for the commands of a test file, or of each of its tests, and an end to whatever they
 * started. Commands in this process find it as DATABASE_URL.
 */
export class CommandStage {
  #database: Awaited<ReturnType<typeof createDatabase>> | undefined;
  #processes: CommandLine[] = [];

  constructor(scope: "file" | "test") {
    const [before, after] = scope === "file" ? [beforeAll, afterAll] : [beforeEach, afterEach];
    before(() => this.#open());
    after(() => this.#close());
  }

  get url(): string {
    if (this.#database === undefined) throw new Error("there is no database yet");
    return this.#database.url;
  }

  start(args: readonly string[], env: Environment = {}, around: Surroundings = {}): CommandLine {
    const started = new CommandLine(args, { DATABASE_URL: this.url, ...env }, around);
    this.#processes.push(started);
    return started;
  }

  run(args: readonly string[], env: Environment = {}, around: Surroundings = {}): Promise<Ended> {
    return this.start(args, env, around).ended();
  }

  async #open(): Promise<void> {
    this.#database = await createDatabase();
    process.env.DATABASE_URL = this.#database.url;
  }

  async #close(): Promise<void> {
    delete process.env.DATABASE_URL;
    for (const { child } of this.#processes) if (child.exitCode === null) child.kill("SIGKILL");
    await Promise.all(this.#processes.map((one) => one.ended()));
    this.#processes = [];
    await this.#database?.drop();
  }
}

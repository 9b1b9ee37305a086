// The built command line as a process of its own.

import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { until } from "./until.ts";

const main = join(import.meta.dirname, "..", "..", "dist", "cli", "main.js");

export interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export class CommandLine {
  readonly child: ChildProcessWithoutNullStreams;
  readonly #closed: Promise<unknown>;
  out = "";
  err = "";

  constructor(
    args: readonly string[],
    env: Readonly<Record<string, string>> = {},
    entry: string = main,
  ) {
    this.child = spawn(process.execPath, [entry, ...args], {
      cwd: "/",
      env: { PATH: process.env.PATH, ...env },
    });
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
  env: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  return new CommandLine(args, env).ended();
}

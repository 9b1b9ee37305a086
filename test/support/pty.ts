// The built command line on a real terminal: a pty that `script` of util-linux makes, and a screen that does
// with what arrives what a terminal would.

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { promisify } from "node:util";
import { main } from "./command-line.ts";
import { Screen } from "./screen.ts";
import { until } from "./until.ts";

const run = promisify(execFile);

export interface PtyOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly columns?: number;
  readonly rows?: number;
}

const quote = (word: string) => `'${word.replaceAll("'", `'\\''`)}'`;
const nameLine = /^tty:(\S+)\r?\n/;

export class Pty {
  readonly screen: Screen;
  readonly #child: ChildProcess;
  readonly #closed: Promise<unknown>;
  #raw = "";
  #written = 0;

  constructor(args: readonly string[], options: PtyOptions = {}) {
    const { columns = 80, rows = 24, cwd = "/", env = {} } = options;
    this.screen = new Screen(columns, rows);
    const command = [process.execPath, main, ...args].map(quote).join(" ");
    const inside = `stty rows ${rows} cols ${columns} && printf 'tty:%s\\n' "$(tty)" && exec ${command}`;
    this.#child = spawn("script", ["-qefc", inside, "/dev/null"], {
      cwd,
      env: { PATH: process.env.PATH, TERM: "xterm-256color", SHELL: "/bin/sh", ...env },
    });
    this.#child.stdout?.setEncoding("utf8").on("data", (text) => this.#hear(text));
    this.#closed = once(this.#child, "close").catch((cause) => {
      throw new Error("`script` is missing: install util-linux (Debian: bsdutils)", { cause });
    });
    this.#closed.catch(() => undefined);
  }

  /** All that has arrived, escape sequences included. */
  get raw(): string {
    return this.#raw.replace(nameLine, "");
  }

  type(keys: string): void {
    this.#child.stdin?.write(keys);
  }

  async resize(columns: number, rows: number): Promise<void> {
    const [, device = ""] = nameLine.exec(this.#raw) ?? [];
    this.screen.resize(columns, rows);
    await run("stty", ["-F", device, "rows", String(rows), "cols", String(columns)]);
  }

  async shows(text: string | RegExp): Promise<string> {
    return until(`the screen shows ${text}`, () => {
      const shown = this.screen.text;
      const isThere = typeof text === "string" ? shown.includes(text) : text.test(shown);
      if (isThere) return shown;
      if (this.#child.exitCode !== null) throw new Error(`it ended:\n${shown}\n${this.#raw}`);
      return undefined;
    });
  }

  async ended(): Promise<number | null> {
    await this.#closed;
    return this.#child.exitCode;
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode === null) this.#child.kill("SIGKILL");
    await this.#closed.catch(() => undefined);
  }

  #hear(text: string): void {
    this.#raw += text;
    // The first line is for us.
    if (!nameLine.test(this.#raw)) return;
    this.screen.write(this.raw.slice(this.#written));
    this.#written = this.raw.length;
  }
}

// `millrace worker --watch`: the worker is a process of its own; when a file changes it is asked to stop,
// drains, and another is started in its place. A module that cannot be loaded waits for the next change.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { dirname, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { loadConfig } from "../config.ts";
import { systemClock } from "../runtime/clock.ts";
import { startEmbedded } from "../store/postgres/embedded.ts";
import type { Values } from "./command.ts";
import { databaseChoice } from "./connect.ts";
import { FolderWatch } from "./folder-watch.ts";
import { StopRequest } from "./stop-request.ts";
import type { Terminal } from "./terminal.ts";
import { plain } from "./text.ts";

const main = fileURLToPath(new URL("./main.js", import.meta.url));
const watched = /\.(?:[cm]?[jt]sx?|json)$/;
const foreign = new Set(["node_modules", ".git", ".millrace"]);
/** Editors write a file in several steps. */
const settleMs = 100;

export async function watchWorker(
  values: Values,
  terminal: Terminal,
  paths: readonly string[],
): Promise<number> {
  const stop = new StopRequest(terminal);
  const { databaseUrl, dataDir } = loadConfig(databaseChoice(values));
  // So that an embedded server outlives the restarts.
  const server = databaseUrl === undefined ? await startEmbedded({ dataDir }) : null;
  const changes = new Changes(paths);
  try {
    while (!stop.signal.aborted) {
      const child = start(values, paths);
      const ended = once(child, "exit");
      const file = await changes.next(stop.signal, child);
      if (!isOver(child)) child.kill("SIGTERM");
      await ended;
      if (stop.signal.aborted) break;
      if (file === null) {
        terminal.printError("The worker ended; it starts again when a file changes.");
        await changes.next(stop.signal);
      } else terminal.printError(`${plain(file)} changed; starting again.`);
    }
  } finally {
    changes.close();
    await server?.stop();
    stop.release();
  }
  return 0;
}

const isOver = ({ exitCode, signalCode }: ChildProcess) => exitCode !== null || signalCode !== null;

function start(values: Values, paths: readonly string[]): ChildProcess {
  const given = Object.entries(values)
    .filter(([name]) => name !== "watch")
    .flatMap(([name, value]) => {
      if (value === true) return [`--${name}`];
      return value === undefined || value === false ? [] : [`--${name}=${value}`];
    });
  return spawn(process.execPath, [main, "worker", ...paths, ...given], { stdio: "inherit" });
}

class Changes {
  readonly #folders: FolderWatch;
  #changed: string | null = null;
  #wake: () => void = () => undefined;

  constructor(paths: readonly string[]) {
    this.#folders = new FolderWatch([...new Set(paths.map((path) => dirname(path)))], {
      ignored: foreign,
      onChange: (path) => this.#hear(path),
    });
  }

  #hear(path: string): void {
    if (!watched.test(path)) return;
    this.#changed = relative(".", path);
    this.#wake();
  }

  /** The file that changed; null: somebody asked to stop, or the child has ended by itself. */
  async next(stopped: AbortSignal, child?: ChildProcess): Promise<string | null> {
    while (this.#changed === null && !stopped.aborted && (child === undefined || !isOver(child))) {
      await new Promise<void>((wake) => {
        this.#wake = wake;
        stopped.addEventListener("abort", () => wake(), { once: true });
        child?.once("exit", () => wake());
      });
    }
    if (this.#changed !== null) await systemClock.sleep(settleMs, stopped);
    const file = this.#changed;
    this.#changed = null;
    return stopped.aborted ? null : file;
  }

  close(): void {
    this.#folders.close();
  }
}

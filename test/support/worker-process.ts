// Real worker processes (test/processes/chaos-worker.mjs) and the ledgers they write.

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Options, WorkOptions } from "../../src/index.ts";
import { until } from "./until.ts";

export interface LedgerLine {
  /** Milliseconds of the monotonic clock, which processes on one machine share. */
  readonly t: number;
  readonly proc: string;
  readonly what: string;
  readonly job?: string;
  readonly token?: string;
  readonly attempt?: number;
  readonly key?: string;
  readonly reason?: string;
  readonly outcome?: string;
  readonly jobs?: number;
  readonly connection?: string;
  readonly service?: string;
  readonly message?: string;
  readonly term?: number;
  readonly latenessMs?: readonly number[];
  /** Of an error that nobody caught: whether the process was up already. */
  readonly ready?: boolean;
}

export interface WorkerProcessOptions {
  readonly name: string;
  readonly ledger: string;
  readonly connect: Options;
  readonly work?: Omit<WorkOptions, "defaultHandler" | "name">;
  readonly types?: readonly ChaosType[];
  /** What a second worker of this process runs. */
  readonly besides?: readonly ChaosType[];
}

interface ChaosType {
  readonly type: string;
  readonly maxRuntimeMs?: number;
  readonly maxAttempts?: number;
}

/** A manager: no handlers, but what it does for the queue's health. */
export interface ManagerProcessOptions {
  readonly name: string;
  readonly ledger: string;
  readonly connect: Options;
  /** Writes under its last term without end, into the table leader_write. */
  readonly writes?: boolean;
}

const program = (name: string) => fileURLToPath(new URL(`../processes/${name}`, import.meta.url));

export class WorkerProcess {
  readonly name: string;
  readonly #ledger: string;
  readonly #child: ChildProcess;
  #questions = 0;

  constructor(
    options: WorkerProcessOptions | ManagerProcessOptions,
    file: "chaos-worker.mjs" | "manager.mjs" = "chaos-worker.mjs",
  ) {
    this.name = options.name;
    this.#ledger = options.ledger;
    const argument = JSON.stringify({ types: [{ type: "chaos" }], work: {}, ...options });
    this.#child = fork(program(file), [argument], { execArgv: [] });
  }

  async ready(): Promise<this> {
    const ended = once(this.#child, "exit").then(([code]) => {
      throw new Error(`${this.name} ended with ${code} before it was ready`);
    });
    await Promise.race([once(this.#child, "message"), ended]);
    ended.catch(() => {});
    return this;
  }

  get exited(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  get exitCode(): number | null {
    return this.#child.exitCode;
  }

  lines(): LedgerLine[] {
    return readLedger(this.#ledger);
  }

  of(what: string): LedgerLine[] {
    return this.lines().filter((line) => line.what === what);
  }

  /** Waits for a line of the ledger. */
  async writes(what: string, fits: (line: LedgerLine) => boolean = () => true) {
    return until(`${this.name} writes ${what}`, () => this.of(what).find(fits), 45_000);
  }

  /** Enqueues in that process, and answers with the job's id. */
  enqueue(payload: unknown, type = "chaos"): Promise<string> {
    return this.#ask({ do: "enqueue", type, payload });
  }

  /** Cancels through that process's pool. */
  cancel(id: string): Promise<string> {
    return this.#ask({ do: "cancel", id });
  }

  reports(): Promise<unknown> {
    return this.#ask({ do: "reports" });
  }

  #ask(request: object): Promise<string> {
    const no = ++this.#questions;
    return new Promise((resolve) => {
      const hear = ({ to, answer }: { to?: number; answer: string }) => {
        if (to !== no) return;
        this.#child.off("message", hear);
        resolve(answer);
      };
      this.#child.on("message", hear);
      this.#child.send({ ...request, no });
    });
  }

  /** Lets handlers of the kind "hold" end. */
  release(): void {
    this.#child.send({ do: "release" });
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  async kill(): Promise<void> {
    if (this.exited) return;
    const exited = once(this.#child, "exit");
    this.signal("SIGKILL");
    await exited;
  }

  /** Asks for Millrace's own stop and does not wait for it. */
  askToStop(): void {
    if (this.#child.connected) this.#child.send({ do: "stop" });
  }

  async ended(): Promise<void> {
    await until(`${this.name} exits`, () => this.exited, 60_000);
  }
}

export function readLedger(path: string): LedgerLine[] {
  const lines = readFileSync(path, "utf8").split("\n");
  // A process killed while writing leaves half a line.
  return lines.flatMap((line) => (line.endsWith("}") ? [JSON.parse(line) as LedgerLine] : []));
}

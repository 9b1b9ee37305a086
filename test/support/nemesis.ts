// Breaks things at random until it is told to stop, then heals everything.

import { setTimeout as delay } from "node:timers/promises";
import type { TestServer } from "./postgres.ts";
import type { TcpProxy } from "./tcp-proxy.ts";
import type { Trial } from "./trial.ts";
import type { WorkerProcess } from "./worker-process.ts";

export interface NemesisOptions {
  readonly trial: Trial;
  readonly server: TestServer;
  readonly proxy: TcpProxy;
  readonly processes: number;
  readonly leaseMs: number;
  readonly random: () => number;
}

export class Nemesis {
  readonly #options: NemesisOptions;
  readonly done: Record<string, number> = {};
  readonly #running: WorkerProcess[] = [];
  readonly #healing: Promise<unknown>[] = [];
  #stopped = false;
  #loop: Promise<void> = Promise.resolve();

  constructor(options: NemesisOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    const { processes } = this.#options;
    await Promise.all(Array.from({ length: processes }, () => this.#startProcess()));
    this.#loop = this.#run();
  }

  /** Ends when every process runs again and no trap is left. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#loop;
    await Promise.all(this.#healing);
    this.#options.proxy.open();
  }

  async #startProcess(): Promise<void> {
    const { trial, proxy, random, leaseMs } = this.#options;
    // Half of them have the proxy between themselves and the database.
    const databaseUrl = random() < 0.5 ? proxy.url : trial.url;
    const connect = {
      databaseUrl,
      leaseMs,
      renewMs: Math.round(leaseMs / 4),
      queryTimeoutMs: 3_000,
    };
    for (;;) {
      try {
        this.#running.push(await trial.start({ connect, work: { concurrency: 8 } }));
        return;
      } catch {
        // The server is just being restarted.
        await delay(200);
      }
    }
  }

  async #run(): Promise<void> {
    const { random } = this.#options;
    while (!this.#stopped) {
      await delay(200 + 800 * random());
      const luck = random();
      if (luck < 0.25) await this.#kill();
      else if (luck < 0.5) this.#stall();
      else if (luck < 0.65) await this.#terminate();
      else if (luck < 0.92) this.#loseAnswers();
      else await this.#restart();
    }
  }

  #note(what: string): void {
    this.done[what] = (this.done[what] ?? 0) + 1;
  }

  #pick(): WorkerProcess | undefined {
    return this.#running[Math.floor(this.#options.random() * this.#running.length)];
  }

  async #kill(): Promise<void> {
    const victim = this.#pick();
    if (victim === undefined) return;
    this.#note("kill");
    this.#running.splice(this.#running.indexOf(victim), 1);
    await victim.kill();
    this.#healing.push(this.#startProcess());
  }

  #stall(): void {
    const victim = this.#pick();
    if (victim === undefined) return;
    this.#note("stall");
    victim.signal("SIGSTOP");
    const ms = this.#options.leaseMs * (0.5 + 2 * this.#options.random());
    this.#healing.push(delay(ms).then(() => victim.signal("SIGCONT")));
  }

  async #terminate(): Promise<void> {
    this.#note("terminate");
    const text = `select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name like 'millrace %' and random() < 0.3`;
    await this.#options.trial.db.query(text).catch(() => {});
  }

  #loseAnswers(): void {
    this.#note("lose");
    const { proxy } = this.#options;
    for (const name of ["turn_by_", "settle_by_", "settle_held", "flush_"]) {
      void proxy.loseAnswer("client", name);
    }
  }

  async #restart(): Promise<void> {
    this.#note("restart");
    await this.#options.server.restartImmediate();
  }
}

// All that `millrace dev` says: to a person at a terminal, into a file, or as JSON to a program.

import { join } from "node:path";
import type { Millrace } from "../client/millrace.ts";
import type { HttpServer } from "../http/server.ts";
import { systemClock } from "../runtime/clock.ts";
import type { EmbeddedServer } from "../store/postgres/embedded.ts";
import { withoutPassword } from "./database-url.ts";
import { demoQueues } from "./demo-jobs.ts";
import type { Presence } from "./dev-presence.ts";
import { type Progress, type ProgressReader, progressJson, progressLine } from "./progress.ts";
import type { Terminal } from "./terminal.ts";

interface Started {
  readonly dataDir: string;
  readonly demo: boolean;
  readonly jobsPerSecond: number;
  readonly ignoresDatabaseUrl: boolean;
}

export interface Api {
  readonly server: HttpServer;
  /** A key that was made for this run; null: the user has one. */
  readonly madeKey: string | null;
  readonly hasDashboard: boolean;
  /** The port it would have liked best; null: it has the one that was asked for. */
  readonly wantedPort: number | null;
}

export class DevReport {
  readonly #terminal: Terminal;
  readonly #json: boolean;
  readonly intervalMs: number;
  #first: Progress | undefined;
  #last: Progress | undefined;
  #unreachable = false;
  #hasStarted = false;
  #api: Api | undefined;

  constructor(terminal: Terminal, json: boolean) {
    this.#terminal = terminal;
    this.#json = json;
    this.intervalMs = json ? 1_000 : terminal.isInteractive ? 250 : 2_000;
  }

  get hasStarted(): boolean {
    return this.#hasStarted;
  }

  deleted(dataDir: string): void {
    this.#say(`Deleted the data in ${dataDir}.`);
  }

  creating(): void {
    this.#say("Creating an embedded PostgreSQL (only this once, a few seconds) …");
  }

  /** Another one runs on this folder. */
  found({ pid, url }: Presence): void {
    this.#say(`millrace dev runs here already: process ${pid}, ${url}/api`);
    this.#say("This one joins its database and works beside it; Ctrl-C stops only this one.\n");
  }

  serving(api: Api): void {
    this.#api = api;
  }

  started(options: Started, server: EmbeddedServer): void {
    const { dataDir, demo, jobsPerSecond } = options;
    this.#hasStarted = true;
    const bold = (text: string) => this.#terminal.style("bold", text);
    this.#say(`${bold("Millrace")} on PostgreSQL ${server.version}`);
    if (server.joined)
      this.#say("  joined    another process runs this database already; both share its jobs");
    this.#say(`  data      ${dataDir}`);
    this.#say(`  database  ${withoutPassword(server.url)}`);
    this.#say(`  password  in ${join(dataDir, "password")}`);
    this.#sayApi();
    if (options.ignoresDatabaseUrl)
      this.#say("  note      DATABASE_URL is set, but dev keeps to its own database");
    if (demo) {
      this.#say(`  demo      about ${jobsPerSecond} jobs a second in ${demoQueues.length} queues`);
      this.#say("  look      npx millrace top · jobs tail · queues · dlq · triggers · breakers");
    }
    if (!demo) this.#say("  demo      none: connect producers and workers of your own");
    this.#say("  stop      Ctrl-C\n");
  }

  #sayApi(): void {
    if (this.#api === undefined) return;
    const { server, madeKey, wantedPort, hasDashboard } = this.#api;
    const moved = wantedPort !== null && !server.url.endsWith(`:${wantedPort}`);
    if (hasDashboard) {
      this.#say(`  dashboard ${server.url}/#ticket=${server.createTicket()}`);
      this.#say("            (signs you in, once and within ten minutes)");
    }
    this.#say(`  api       ${server.url}/api`);
    if (moved)
      this.#say(`  port      ${wantedPort} is taken, so it is another; --port chooses one`);
    this.#say(`  key       ${madeKey ?? "MILLRACE_ADMIN_KEY"}`);
  }

  /** What went wrong with the database, in words; jobs that fail are in the numbers. */
  listenTo(millrace: Millrace): void {
    millrace.events.on("connection.lost", () => this.#lost());
    millrace.events.on("connection.restored", () => this.#restored());
  }

  async begin(reader: ProgressReader): Promise<void> {
    this.#first = await this.#read(reader);
    if (this.#first !== undefined) this.#show(this.#first);
  }

  async tick(reader: ProgressReader): Promise<void> {
    const progress = await this.#read(reader);
    if (progress !== undefined) this.#show(progress);
  }

  stopping(running: number): void {
    this.#terminal.endLive();
    this.#say(`Stopping (${running} running); Ctrl-C again to stop at once.`);
  }

  async end(reader: ProgressReader): Promise<void> {
    this.#last = await this.#read(reader);
    if (this.#json && this.#last !== undefined) this.#show(this.#last);
  }

  stopped(dataDir: string, joined: boolean): void {
    const since = (name: "completed" | "retried" | "dead") =>
      ((this.#last?.[name] ?? 0) - (this.#first?.[name] ?? 0)).toLocaleString("en");
    if (this.#last !== undefined)
      this.#say(
        `Stopped. Since the start ${since("completed")} completed, ${since("retried")} retried, ` +
          `${since("dead")} dead; ${this.#last.waiting.toLocaleString("en")} waiting.`,
      );
    if (joined) this.#say("Other processes may still use the database.");
    this.#say(`The data stays in ${dataDir}; --fresh deletes it.`);
  }

  async #read(reader: ProgressReader): Promise<Progress | undefined> {
    try {
      return await reader.read();
    } catch {
      this.#lost();
      return undefined;
    }
  }

  #show(progress: Progress): void {
    const { isInteractive, columns } = this.#terminal;
    if (this.#json) this.#terminal.print(progressJson(progress, systemClock.now()));
    else if (isInteractive)
      this.#terminal.showLive(progressLine(progress, this.#terminal, columns));
    else this.#terminal.print(progressLine(progress, this.#terminal, Number.POSITIVE_INFINITY));
  }

  #lost(): void {
    if (this.#unreachable) return;
    this.#unreachable = true;
    this.#say("The database is not reachable; trying again …");
  }

  #restored(): void {
    if (!this.#unreachable) return;
    this.#unreachable = false;
    this.#say("The database is back.");
  }

  #say(text: string): void {
    if (this.#json) this.#terminal.printError(text);
    else this.#terminal.print(text);
  }
}

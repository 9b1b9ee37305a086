// Four worker processes before one platform that fails and recovers. The platform keeps a record of
// every call, and a trigger in the database one of every change of the breaker: what is proved here
// rests on neither the workers nor the breaker telling the truth about themselves.

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import pg from "pg";
import type { BreakerSettings, BreakerState } from "../../src/index.ts";
import { defineJob, Millrace } from "../../src/index.ts";
import { createDatabase } from "./postgres.ts";
import { until } from "./until.ts";

export interface Call {
  readonly by: string;
  readonly job: string;
  readonly attempt: number;
  /** When its handler began, by the clock that all processes of this machine share. */
  readonly at: number;
}

export interface Period {
  readonly state: BreakerState;
  readonly from: number;
  readonly to: number;
}

const program = fileURLToPath(new URL("../processes/breaker-worker.mjs", import.meta.url));
const queue = "platform-calls";
const platformJob = defineJob({ type: "platform.call", queue, maxAttempts: 1_000 });

const recordChanges = `
  create table breaker_change (id serial, state text not null, at timestamptz not null);
  create function note_change() returns trigger language plpgsql as $$ begin
    insert into breaker_change (state, at) values (new.state, clock_timestamp());
    return null;
  end $$;
  create trigger note_change after update on millrace.breaker for each row
    when (old.state <> new.state) execute function note_change();`;

export class BreakerTrial {
  readonly calls: Call[] = [];
  /** "hangs" keeps the caller waiting for ever. */
  platform: "up" | "down" | "hangs" = "up";
  readonly #held: ServerResponse[] = [];
  readonly #processes = new Map<string, ChildProcess>();
  readonly millrace: Millrace;
  readonly #pool: pg.Pool;
  readonly #server: Server;
  readonly #database: Awaited<ReturnType<typeof createDatabase>>;

  private constructor(
    millrace: Millrace,
    database: Awaited<ReturnType<typeof createDatabase>>,
    server: Server,
  ) {
    this.millrace = millrace;
    this.#database = database;
    this.#pool = new pg.Pool({ connectionString: database.url, max: 2 });
    this.#pool.on("error", () => {});
    this.#server = server;
    server.on("request", ({ url = "" }, response) => this.#answer(url, response));
  }

  static async create(settings: Partial<BreakerSettings>): Promise<BreakerTrial> {
    const database = await createDatabase();
    const millrace = await Millrace.connect({ databaseUrl: database.url, logLevel: "silent" });
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const trial = new BreakerTrial(millrace, database, server);
    await millrace.breakers.configure("platform", settings);
    await trial.#pool.query(recordChanges);
    return trial;
  }

  async start(processes: number, concurrency: number): Promise<void> {
    const { port } = this.#server.address() as AddressInfo;
    const ready = Array.from({ length: processes }, async (_, i) => {
      const name = `w${i + 1}`;
      const argument = JSON.stringify({
        ...{ name, concurrency, queue, platform: `http://127.0.0.1:${port}/` },
        connect: { databaseUrl: this.#database.url, leaseMs: 3_000, pollMs: 500 },
      });
      const child = fork(program, [argument], { execArgv: [] });
      this.#processes.set(name, child);
      await once(child, "message");
    });
    await Promise.all(ready);
  }

  enqueue(jobs: number): Promise<{ id: string }[]> {
    return this.millrace.enqueueMany(platformJob, Array(jobs).fill({}));
  }

  /** What the breaker was, and when, as the database saw it. */
  async periods(): Promise<Period[]> {
    const { rows } = await this.#pool.query<{ state: BreakerState; at: number }>(
      "select state, extract(epoch from at)::float8 * 1000 as at from breaker_change order by id",
    );
    return rows.map(({ state, at }, i) => ({
      ...{ state, from: at, to: rows[i + 1]?.at ?? Number.POSITIVE_INFINITY },
    }));
  }

  async entered(state: BreakerState): Promise<number> {
    return (await this.periods()).filter((period) => period.state === state).length;
  }

  during({ from, to }: Period): Call[] {
    return this.calls.filter(({ at }) => at >= from && at < to);
  }

  async allEnded(jobs: number, timeoutMs: number): Promise<void> {
    await until(
      "all jobs have completed",
      async () => {
        const { rows } = await this.#pool.query<{ n: number }>(
          "select count(*)::int as n from millrace.history where state = 'completed'",
        );
        return rows[0]?.n === jobs;
      },
      timeoutMs,
    );
  }

  async attemptsSpent(): Promise<number> {
    const { rows } = await this.#pool.query<{ n: number }>(
      "select coalesce(sum(attempt), 0)::int as n from millrace.history",
    );
    return rows[0]?.n ?? 0;
  }

  /** Probes that failed and cost their jobs nothing. */
  async freeProbes(): Promise<number> {
    const { rows } = await this.#pool.query<{ n: number }>(
      `select coalesce(sum((entry->>'probes')::int), 0)::int as n
      from millrace.history, json_array_elements(timeline) entry`,
    );
    return rows[0]?.n ?? 0;
  }

  /** When those who wait are to come back, in milliseconds after the first of them. */
  async returns(): Promise<number[]> {
    const { rows } = await this.#pool.query<{ ms: number }>(
      `select extract(epoch from due_at - min(due_at) over ())::float8 * 1000 as ms
      from millrace.scheduled_job order by due_at`,
    );
    return rows.map(({ ms }) => ms);
  }

  async waiting(): Promise<{ ready: number; scheduled: number }> {
    const { rows } = await this.#pool.query<{ ready: number; scheduled: number }>(
      `select (select count(*)::int from millrace.job) as ready,
        (select count(*)::int from millrace.scheduled_job) as scheduled`,
    );
    return rows[0] ?? { ready: 0, scheduled: 0 };
  }

  /** Whoever was kept waiting is turned away. */
  release(): void {
    for (const response of this.#held.splice(0)) response.writeHead(503).end();
  }

  async kill(name: string): Promise<void> {
    const child = this.#processes.get(name);
    if (child === undefined) throw new Error(`there is no process ${name}`);
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await exited;
    this.#processes.delete(name);
  }

  async close(): Promise<void> {
    const exits = [...this.#processes.values()].map(async (child) => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, "exit");
      child.kill("SIGKILL");
      await exited;
    });
    await Promise.all(exits);
    for (const response of this.#held) response.destroy();
    this.#server.closeAllConnections();
    this.#server.close();
    await this.millrace.stop();
    await this.#pool.end();
    await this.#database.drop();
  }

  #answer(url: string, response: ServerResponse): void {
    const said = new URL(url, "http://platform").searchParams;
    const number = (name: string) => Number(said.get(name));
    this.calls.push({
      ...{ by: said.get("by") ?? "", job: said.get("job") ?? "" },
      ...{ attempt: number("attempt"), at: number("at") },
    });
    if (this.platform === "hangs") this.#held.push(response);
    else response.writeHead(this.platform === "up" ? 200 : 503).end();
  }
}

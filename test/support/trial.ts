// One trial of a chaos test: a database, a producer, worker processes, and the ledgers they leave.

import { closeSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { defineJob, type Job, Millrace, type Options } from "../../src/index.ts";
import { createDatabase } from "./postgres.ts";
import { until } from "./until.ts";
import {
  type LedgerLine,
  readLedger,
  WorkerProcess,
  type WorkerProcessOptions,
} from "./worker-process.ts";

/** What a handler does; test/processes/chaos-worker.mjs says how. */
interface Behaviour {
  readonly kind:
    | "quick"
    | "long"
    | "deaf"
    | "stubborn"
    | "hold"
    | "block"
    | "exit"
    | "die_after"
    | "fail";
  readonly ms?: number;
}

export interface ChaosPayload extends Behaviour {
  /** Only the first attempt does this; later ones do `then`, or are quick. */
  readonly once?: boolean;
  readonly then?: Behaviour;
  readonly mark?: string;
}

export const chaosJob = defineJob({ type: "chaos" });

/** Short, but long enough for a busy machine with two cores. */
export const shortLease = { leaseMs: 2_500, renewMs: 500, reclaimMs: 200, pollMs: 300 } as const;

interface StartOptions extends Pick<WorkerProcessOptions, "work" | "types" | "besides"> {
  readonly connect?: Options;
}

export class Trial {
  readonly url: string;
  readonly millrace: Millrace;
  readonly db: pg.Pool;
  readonly #folder = mkdtempSync(join(tmpdir(), "millrace-chaos-"));
  readonly #drop: () => Promise<void>;
  readonly #processes: WorkerProcess[] = [];
  readonly #ledgers: string[] = [];

  private constructor(url: string, millrace: Millrace, drop: () => Promise<void>) {
    this.url = url;
    this.millrace = millrace;
    this.#drop = drop;
    this.db = new pg.Pool({ connectionString: url, max: 2, application_name: "trial" });
    this.db.on("error", () => {});
  }

  static async create(serverUrl?: string): Promise<Trial> {
    const database = await createDatabase(serverUrl);
    const { url } = database;
    const millrace = await Millrace.connect({ databaseUrl: url, logLevel: "silent" });
    return new Trial(url, millrace, () => database.drop());
  }

  /** A worker process that is up and claiming. */
  async start(options: StartOptions = {}): Promise<WorkerProcess> {
    const name = `p${this.#processes.length + 1}`;
    const ledger = join(this.#folder, `${name}.jsonl`);
    closeSync(openSync(ledger, "a"));
    const { connect, ...rest } = options;
    const process = new WorkerProcess({
      ...rest,
      name,
      ledger,
      connect: { databaseUrl: this.url, migrate: false, ...shortLease, ...connect },
    });
    this.#processes.push(process);
    this.#ledgers.push(ledger);
    return process.ready();
  }

  /** A manager process that takes part in elections. */
  async startManager(options: { connect?: Options; writes?: boolean } = {}) {
    const name = `m${this.#processes.length + 1}`;
    const ledger = join(this.#folder, `${name}.jsonl`);
    closeSync(openSync(ledger, "a"));
    const connect = { databaseUrl: this.url, migrate: false, ...shortLease, ...options.connect };
    const process = new WorkerProcess({ ...options, name, ledger, connect }, "manager.mjs");
    this.#processes.push(process);
    this.#ledgers.push(ledger);
    return process.ready();
  }

  async enqueue(payload: ChaosPayload, type = "chaos", key?: string): Promise<string> {
    const options = key === undefined ? {} : { key };
    const { id } = await this.millrace.enqueue(defineJob({ type }), payload, options);
    return id;
  }

  async enqueueMany(count: number, payload: (i: number) => ChaosPayload): Promise<string[]> {
    const payloads = Array.from({ length: count }, (_, i) => payload(i));
    return (await this.millrace.enqueueMany(chaosJob, payloads)).map(({ id }) => id);
  }

  async job(id: string): Promise<Job> {
    const job = await this.millrace.get(id);
    if (job === null) throw new Error(`job ${id} is lost`);
    return job;
  }

  /** Waits until the job has ended. */
  async end(id: string, timeoutMs = 60_000): Promise<Job> {
    const what = `job ${id} ends`;
    return until(
      what,
      async () => {
        const job = await this.job(id);
        return job.finishedAt !== null && job;
      },
      timeoutMs,
    );
  }

  /** Waits until nothing is ready, running or scheduled. */
  async drained(timeoutMs = 120_000): Promise<void> {
    await until("every job ends", async () => (await this.count("open")) === 0, timeoutMs);
  }

  /** Rows: not ended, completed (each history row counts), or dead. */
  async count(what: "open" | "completed" | "dead"): Promise<number> {
    const { rows } = await this.db.query<{ n: number }>(counts[what]);
    return rows[0]?.n ?? 0;
  }

  /** Milliseconds by the database's clock. */
  async now(): Promise<number> {
    const { rows } = await this.db.query<{ now: Date }>("select clock_timestamp() as now");
    return rows[0]?.now.getTime() ?? 0;
  }

  async historyRows(id: string): Promise<number> {
    const text = "select count(*)::int as n from millrace.history where id = $1";
    const { rows } = await this.db.query<{ n: number }>(text, [id]);
    return rows[0]?.n ?? 0;
  }

  ledger(): LedgerLine[] {
    return this.#ledgers.flatMap(readLedger).sort((a, b) => a.t - b.t);
  }

  /** Lines of all processes about one job. */
  about(id: string, what?: string): LedgerLine[] {
    return this.ledger().filter(
      (line) => line.job === id && (what === undefined || line.what === what),
    );
  }

  async close(): Promise<void> {
    const uncaught = this.ledger().filter((line) => line.what === "uncaught" && line.ready);
    for (const process of this.#processes) process.signal("SIGCONT");
    await Promise.all(this.#processes.map((process) => process.kill()));
    await this.millrace.stop();
    await this.db.end();
    await this.#drop();
    rmSync(this.#folder, { recursive: true, force: true });
    if (uncaught.length > 0) throw new Error(`not caught: ${JSON.stringify(uncaught)}`);
  }
}

const counts = {
  open: `select (select count(*) from millrace.job)::int + (select count(*) from millrace.scheduled_job)::int as n`,
  completed: "select count(*)::int as n from millrace.history where state = 'completed'",
  dead: "select count(*)::int as n from millrace.dead_job",
} as const;

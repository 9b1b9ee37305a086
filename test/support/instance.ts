// One database per test file and any number of Millrace instances on it, stopped by themselves.

import { randomUUID } from "node:crypto";
import pg from "pg";
import { afterAll, afterEach, beforeAll } from "vitest";
import { type ConnectOptions, Millrace, MillraceError } from "../../src/index.ts";
import { createDatabase } from "./postgres.ts";

export interface Instances {
  readonly url: string;
  /** The file's own instance; its workers stop after each test. */
  readonly millrace: Millrace;
  /** Another instance on the same database; it stops after the test. */
  connect(options?: ConnectOptions): Promise<Millrace>;
  work: Millrace["work"];
  query<R extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<R[]>;
}

const quick: ConnectOptions = { logLevel: "silent", pollMs: 200, reclaimMs: 200, drainMs: 5_000 };

export function useMillrace(options: ConnectOptions = {}): Instances {
  let database: Awaited<ReturnType<typeof createDatabase>>;
  let pool: pg.Pool;
  let millrace: Millrace;
  const stops: (() => Promise<void>)[] = [];

  const connect = (more: ConnectOptions = {}) =>
    Millrace.connect({ databaseUrl: database.url, ...quick, ...options, ...more });

  beforeAll(async () => {
    database = await createDatabase();
    pool = new pg.Pool({ connectionString: database.url, max: 3 });
    pool.on("error", () => {}); // a connection that the dropped database ended
    millrace = await connect();
  });
  afterEach(async () => {
    await Promise.all(stops.splice(0).map((stop) => stop()));
  });
  afterAll(async () => {
    await millrace.stop();
    await pool.end();
    await database.drop();
  });

  return {
    get url() {
      return database.url;
    },
    get millrace() {
      return millrace;
    },
    async connect(more) {
      const other = await connect(more);
      stops.push(() => other.stop());
      return other;
    },
    async work(definitions, workOptions) {
      const worker = await millrace.work(definitions, { drainMs: 0, ...workOptions });
      stops.push(() => worker.stop());
      return worker;
    },
    async query<R extends pg.QueryResultRow>(text: string, values: unknown[] = []) {
      return (await pool.query<R>(text, values)).rows;
    },
  };
}

/** A queue of the test's own. */
export const newQueue = (): string => `q-${randomUUID().slice(0, 8)}`;

/** What the call was refused with; an answer is an error. */
export async function refusal(call: Promise<unknown>): Promise<MillraceError> {
  const answer = await call.then(
    (value) => ({ value }),
    (error: unknown) => error,
  );
  if (answer instanceof MillraceError) return answer;
  throw new Error(`expected a MillraceError, got ${JSON.stringify(answer)} ${String(answer)}`);
}

/** How many jobs a queue has ever taken; what was refused is not among them. */
export async function enqueuedIn(millrace: Millrace, queue: string): Promise<number> {
  const found = (await millrace.queues()).find(({ name }) => name === queue);
  return found?.counts.enqueued ?? 0;
}

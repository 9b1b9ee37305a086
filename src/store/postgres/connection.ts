// One reserved connection that heals itself. A query that meets a broken connection is not repeated
// here: whether its commit happened is unknown, and only the caller knows how to find out.

import type pg from "pg";
import type { Clock } from "../../runtime/clock.ts";
import type { Events } from "../../runtime/events.ts";
import { Client, destroy } from "./client.ts";
import { clientConfig } from "./client-config.ts";
import { isConnectionError } from "./failures.ts";
import { Patience } from "./patience.ts";
import { type Executed, PreparedRun, type Value } from "./prepared-run.ts";
import type { Renderer, Runner, RunStatement, Statement } from "./statement.ts";

export interface ConnectionOptions {
  readonly url: string;
  readonly name: string;
  readonly renderer: Renderer;
  readonly events: Events;
  readonly clock: Clock;
  readonly random: () => number;
  readonly queryTimeoutMs: number;
  readonly settings?: Readonly<Record<string, string>>;
  readonly onNotification?: (payload: string, channel: string) => void;
  /** Runs on each new connection before anybody else's query. */
  readonly onConnect?: (client: pg.Client) => Promise<void>;
  readonly onClose?: () => void;
}

/** How long a server may take to say goodbye. */
const goodbyeMs = 1_000;

async function queryOn<R extends pg.QueryResultRow>(
  client: pg.Client,
  renderer: Renderer,
  source: Statement,
  values: unknown[],
): Promise<R[]> {
  const { name, text } = renderer.render(source);
  return (await client.query<R>({ name, text, values })).rows;
}

function rowsOn(
  client: pg.Client,
  renderer: Renderer,
  source: Statement,
  values: readonly Value[],
): Promise<unknown[][]> {
  return new Promise((resolve, reject) => {
    const done = (error: unknown, rows: unknown[][]) =>
      error === undefined ? resolve(rows) : reject(error);
    client.query(new PreparedRun(renderer.render(source), values, done));
  });
}

/** Without an error: the value. Throws nothing. */
type Done<T> = (error: unknown, value: T) => void;
type Task<T> = (client: pg.Client) => Promise<T>;

export class Connection implements Runner {
  readonly #options: ConnectionOptions;
  #client: pg.Client | null = null;
  #connecting: Promise<pg.Client> | null = null;
  #busy = false;
  readonly #waiting: (() => void)[] = [];
  #sent: PreparedRun | null = null;
  #told: Done<unknown[][]> | null = null;
  readonly #patience: Patience;
  #failures = 0;
  #opening: pg.Client | null = null;
  readonly #closing = new AbortController();

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#patience = new Patience(options.queryTimeoutMs);
  }

  rows(source: Statement, values: readonly Value[]): Promise<unknown[][]> {
    return new Promise((resolve, reject) => {
      this.send(source, values, (error, rows) => {
        if (error === undefined) resolve(rows);
        else reject(error);
      });
    });
  }

  /**
   * The same without a promise: that would be one more step on the way of a pickup. `executed` is told before the
   * commit, if the connection is free.
   */
  send(
    source: Statement,
    values: readonly Value[],
    told: Done<unknown[][]>,
    executed: Executed | null = null,
  ): void {
    const client = this.#client;
    if (this.#busy || client === null) {
      const { renderer } = this.#options;
      this.#enter((ready) => rowsOn(ready, renderer, source, values), told);
      return;
    }
    this.#busy = true;
    this.#told = told;
    const rendered = this.#options.renderer.render(source);
    const run = new PreparedRun(rendered, values, this.#answered, executed);
    this.#sent = run;
    try {
      client.query(run);
    } catch (error) {
      // The driver waits for an answer that will not come.
      this.#drop(client, error);
      this.#answered(error, [], run);
    }
    // The server has its work by now: nobody waits for this.
    if (this.#sent === run) this.#patience.start(this.#gaveUp);
  }

  /** Made once, for whatever was sent: on the way of a pickup a function of its own for each is dear. */
  readonly #answered = (error: unknown, rows: unknown[][], run: PreparedRun): void => {
    if (run !== this.#sent) return;
    const told = this.#told;
    this.#sent = null;
    this.#told = null;
    this.#patience.end();
    if (error !== undefined && isConnectionError(error)) this.#drop(this.#client, error);
    told?.(error, rows);
    this.#next();
  };

  readonly #gaveUp = (): void => {
    if (this.#sent !== null) this.#answered(this.#noAnswer(), [], this.#sent);
  };

  query<R extends pg.QueryResultRow>(source: Statement, values: unknown[] = []): Promise<R[]> {
    const { renderer } = this.#options;
    return this.#run((client) => queryOn<R>(client, renderer, source, values));
  }

  /** BEGIN … COMMIT on one and the same server connection, with nobody else's query in between. */
  transaction<T>(body: (query: RunStatement, rows: Runner["rows"]) => Promise<T>): Promise<T> {
    const { renderer } = this.#options;
    return this.#run(async (client) => {
      await client.query("begin");
      try {
        const value = await body(
          (source, values) => queryOn(client, renderer, source, values),
          (source, values) => rowsOn(client, renderer, source, values),
        );
        await client.query("commit");
        return value;
      } catch (error) {
        if (!isConnectionError(error)) await client.query("rollback");
        throw error;
      }
    });
  }

  async connect(): Promise<void> {
    await this.#ready();
  }

  get isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** What is under way fails. Never waits long for a server that does not answer any more. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#options.onClose?.();
    const client = this.#client;
    this.#client = null;
    if (this.#opening !== null) destroy(this.#opening);
    await this.#connecting?.catch(() => {});
    if (client !== null) await endWithin(client, Math.min(goodbyeMs, this.#options.queryTimeoutMs));
  }

  #run<T>(task: Task<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#enter(task, (error, value) => {
        if (error === undefined) resolve(value);
        else reject(error);
      });
    });
  }

  /** One query at a time, in the order they came. */
  #enter<T>(task: Task<T>, told: Done<T>): void {
    const done: Done<T> = (error, value) => {
      told(error, value);
      this.#next();
    };
    if (this.#busy) this.#waiting.push(() => this.#runNow(task, done));
    else {
      this.#busy = true;
      this.#runNow(task, done);
    }
  }

  #next(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#busy = false;
    else next();
  }

  #runNow<T>(task: Task<T>, done: Done<T>): void {
    const client = this.#client;
    if (client !== null) this.#runOn(client, task, done);
    else
      this.#ready().then(
        (ready) => this.#runOn(ready, task, done),
        (error) => done(error, undefined as T),
      );
  }

  #runOn<T>(client: pg.Client, task: Task<T>, done: Done<T>): void {
    let waiting = true;
    const end: Done<T> = (error, value) => {
      if (!waiting) return;
      waiting = false;
      this.#patience.end();
      if (error !== undefined && isConnectionError(error)) this.#drop(client, error);
      done(error, value);
    };
    task(client).then(
      (value) => end(undefined, value),
      (error) => end(error ?? new Error("no reason"), undefined as T),
    );
    // The server has its work by now: nobody waits for this.
    this.#patience.start(() => end(this.#noAnswer(), undefined as T));
  }

  #noAnswer(): Error {
    const text = `no answer from PostgreSQL in ${this.#options.queryTimeoutMs} ms`;
    return Object.assign(new Error(text), { code: "ETIMEDOUT" });
  }

  #ready(): Promise<pg.Client> {
    if (this.#client !== null) return Promise.resolve(this.#client);
    this.#connecting ??= this.#open().finally(() => {
      this.#connecting = null;
    });
    return this.#connecting;
  }

  async #open(): Promise<pg.Client> {
    const { name, clock, random, events } = this.#options;
    const { signal } = this.#closing;
    if (this.#failures > 0) {
      const pauseMs = Math.min(2_000, 25 * 2 ** Math.min(this.#failures, 7)) * (0.5 + random());
      await clock.sleep(pauseMs, signal);
    }
    if (signal.aborted) throw closed();
    const client = new Client(clientConfig(this.#options));
    client.on("error", (error) => this.#drop(client, error));
    client.on("end", () => this.#drop(client, new Error("connection ended")));
    client.on("notification", ({ payload = "", channel }) =>
      this.#options.onNotification?.(payload, channel),
    );
    this.#opening = client;
    try {
      await client.connect();
      await this.#options.onConnect?.(client);
      if (signal.aborted) throw closed();
    } catch (error) {
      this.#failures++;
      destroy(client);
      throw error;
    } finally {
      this.#opening = null;
    }
    if (this.#failures > 0) events.emit("connection.restored", { connection: name });
    this.#failures = 0;
    this.#client = client;
    return client;
  }

  #drop(client: pg.Client | null, error: unknown): void {
    if (client === null || this.#client !== client) return;
    this.#client = null;
    this.#failures = Math.max(1, this.#failures);
    destroy(client);
    if (!this.#closing.signal.aborted) {
      this.#options.events.emit("connection.lost", { connection: this.#options.name, error });
    }
  }
}

const closed = () => Object.assign(new Error("connection closed"), { code: "ECONNCLOSED" });

async function endWithin(client: pg.Client, ms: number): Promise<void> {
  const timer = setTimeout(() => destroy(client), ms);
  await client.end().catch(() => {});
  clearTimeout(timer);
}

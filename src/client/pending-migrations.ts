// What `migrate` would do to a database, without doing it.

import pg from "pg";
import { loadMigrations, type Migration } from "../store/postgres/migrator.ts";
import { Renderer } from "../store/postgres/statement.ts";

/** Those that this schema lacks; all of them when there is no database yet. */
export async function pendingMigrations(
  url: string | undefined,
  schema: string,
): Promise<Migration[]> {
  const migrations = await loadMigrations();
  const applied = url === undefined ? new Set() : await appliedVersions(url, schema);
  return migrations.filter(({ version }) => !applied.has(version));
}

/** The SQL that brings the schema up to date and notes that it is. */
export function migrationScript(migrations: readonly Migration[], schema: string): string {
  const renderer = new Renderer(schema);
  const name = renderer.text("millrace.").slice(0, -1);
  const first = `create schema if not exists ${name};
create table if not exists ${name}.migration (version int primary key, name text not null, applied_at timestamptz not null default now());`;
  const each = migrations.map(
    (migration) => `
begin;
${renderer.text(migration.sql).trim()}
insert into ${name}.migration (version, name) values (${migration.version}, '${migration.name}');
commit;`,
  );
  return [first, ...each].join("\n");
}

async function appliedVersions(url: string, schema: string): Promise<Set<number>> {
  const client = new pg.Client({ connectionString: url, application_name: "millrace migrate" });
  await client.connect();
  try {
    const table = `${pg.escapeIdentifier(schema)}.migration`;
    const { rows } = await client.query<{ found: boolean }>(
      "select to_regclass($1) is not null as found",
      [table],
    );
    if (rows[0]?.found !== true) return new Set();
    const applied = await client.query<{ version: number }>(`select version from ${table}`);
    return new Set(applied.rows.map(({ version }) => version));
  } finally {
    await client.end();
  }
}

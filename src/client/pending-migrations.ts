// What `migrate` would do to a database, without doing it.

import {
  appliedVersions,
  bookkeeping,
  loadMigrations,
  type Migration,
  missing,
} from "../store/postgres/migrator.ts";
import { Renderer } from "../store/postgres/statement.ts";
import { withClient } from "../store/postgres/with-client.ts";

/** Those that this schema lacks and may have; all of them when there is no database yet. */
export async function pendingMigrations(
  url: string | undefined,
  schema: string,
  finish: boolean,
): Promise<Migration[]> {
  const migrations = await loadMigrations();
  if (url === undefined) return migrations;
  return withClient(url, "migrate", async (client) => {
    const applied = await appliedVersions(client, new Renderer(schema));
    return missing(migrations, applied, finish);
  });
}

/** The SQL that brings the schema up to date and notes that it is. */
export function migrationScript(migrations: readonly Migration[], schema: string): string {
  const renderer = new Renderer(schema);
  const each = migrations.map(
    ({ version, name, sql }) => `
begin;
${renderer.text(sql).trim()}
${renderer.text(`insert into millrace.migration (version, name) values (${version}, '${name}');`)}
commit;`,
  );
  return [bookkeeping(renderer), ...each].join("\n");
}

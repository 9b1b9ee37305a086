// All of a store into an empty schema of another server: one snapshot here, one transaction there. Whatever
// fails, the target has either everything or nothing but the empty schema.

import type pg from "pg";
import { MillraceError } from "../../domain/errors.ts";
import { copyRows } from "./copy-rows.ts";
import { withClient } from "./with-client.ts";

export interface TableCount {
  readonly table: string;
  readonly rows: number;
}

export interface TransferOptions {
  readonly from: string;
  readonly to: string;
  readonly schema: string;
  readonly onRows?: (table: string, rows: number) => void;
}

/** What migrations put there by themselves; the source's rows take their place. */
const furnished = new Set(["migration", "leader", "audit_head"]);

const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`;

async function tablesOf(client: pg.Client, schema: string): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = $1 and c.relkind in ('r', 'p') and not c.relispartition and c.relname <> 'migration' order by 1`,
    [schema],
  );
  return rows.map(({ name }) => name);
}

export async function countRows(client: pg.Client, schema: string): Promise<TableCount[]> {
  const counts: TableCount[] = [];
  for (const table of await tablesOf(client, schema)) {
    const { rows } = await client.query(
      `select count(*)::float8 as rows from ${quoted(schema)}.${quoted(table)}`,
    );
    counts.push({ table, rows: rows[0].rows });
  }
  return counts;
}

/** Tables of the schema that hold what somebody has made; none when there is no schema. */
export async function occupied(client: pg.Client, schema: string): Promise<string[]> {
  const found: string[] = [];
  for (const table of await tablesOf(client, schema)) {
    if (furnished.has(table)) continue;
    const { rows } = await client.query(
      `select exists (select from ${quoted(schema)}.${quoted(table)}) as occupied`,
    );
    if (rows[0].occupied) found.push(table);
  }
  return found;
}

/** Who else is connected, by the names that processes give themselves. */
export async function neighbours(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ who: string }>(
    `select distinct coalesce(nullif(application_name, ''), 'process ' || pid) as who from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend' order by 1`,
  );
  return rows.map(({ who }) => who);
}

/** Both schemas are at the same migration. Resolves with what was copied. */
export async function transfer(options: TransferOptions): Promise<TableCount[]> {
  const { from, to, schema } = options;
  return withClient(from, "promote", (source) =>
    withClient(to, "promote", async (target) => {
      const tables = await tablesOf(source, schema);
      await lockSource(source, schema, tables);
      await target.query("begin");
      try {
        await claimTarget(target, schema, tables);
        const copied = await copyTables(source, target, options, tables);
        await copySequences(source, target, schema);
        await compare(target, schema, copied);
        await target.query("commit");
        await source.query("commit");
        return copied;
      } catch (error) {
        await target.query("rollback").catch(() => undefined);
        throw error;
      }
    }),
  );
}

/** Nobody writes from here to the end, and all tables are read as of one moment. */
async function lockSource(source: pg.Client, schema: string, tables: readonly string[]) {
  await source.query("begin isolation level repeatable read");
  await source.query("set local lock_timeout = '5s'");
  const all = tables.map((table) => `${quoted(schema)}.${quoted(table)}`).join(", ");
  await source.query(`lock table ${all} in share mode`);
}

async function claimTarget(target: pg.Client, schema: string, tables: readonly string[]) {
  await target.query("set local lock_timeout = '5s'");
  const all = tables.map((table) => `${quoted(schema)}.${quoted(table)}`);
  await target.query(`lock table ${all.join(", ")} in access exclusive mode`);
  const full = await occupied(target, schema);
  if (full.length > 0) throw notEmpty(schema, full);
  const { rows } = await target.query(
    `select expires_at > now() as led from ${quoted(schema)}.leader`,
  );
  if (rows[0]?.led === true)
    throw new MillraceError(
      "TARGET_NOT_EMPTY",
      "A manager is at work on the target; stop it first.",
    );
}

export const notEmpty = (schema: string, tables: readonly string[]) =>
  new MillraceError(
    "TARGET_NOT_EMPTY",
    `Schema "${schema}" of the target is in use: there are rows in ${tables.slice(0, 5).join(", ")}.`,
  );

async function copyTables(
  source: pg.Client,
  target: pg.Client,
  { schema, onRows }: TransferOptions,
  tables: readonly string[],
): Promise<TableCount[]> {
  await makePartitions(source, target, schema);
  const copied: TableCount[] = [];
  for (const table of tables) {
    const name = `${quoted(schema)}.${quoted(table)}`;
    const columns = (await columnsOf(source, schema, table)).map(quoted).join(", ");
    // Chains and tallies come as they are; they are not made anew.
    await target.query(`alter table ${name} disable trigger user`);
    await target.query(`delete from ${name}`);
    const rows = await copyRows(
      // A partitioned table is read through a query.
      { client: source, sql: `(select ${columns} from ${name})` },
      { client: target, sql: `${name} (${columns})` },
    );
    await target.query(`alter table ${name} enable trigger user`);
    copied.push({ table, rows });
    onRows?.(table, rows);
  }
  return copied;
}

async function columnsOf(client: pg.Client, schema: string, table: string): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `select a.attname as name from pg_attribute a where a.attrelid = $1::regclass and a.attnum > 0
      and not a.attisdropped and a.attgenerated = '' order by a.attnum`,
    [`${quoted(schema)}.${quoted(table)}`],
  );
  return rows.map(({ name }) => name);
}

/** History is partitioned by retention and day: the target needs the days that the source has. */
async function makePartitions(source: pg.Client, target: pg.Client, schema: string) {
  const { rows } = await source.query(
    `select retention_days as class, min((finished_at at time zone 'utc')::date)::text as first,
      max((finished_at at time zone 'utc')::date) - min((finished_at at time zone 'utc')::date) + 1 as days
    from ${quoted(schema)}.history group by 1`,
  );
  for (const { class: retention, first, days } of rows)
    await target.query(`select ${quoted(schema)}.attach_history($1::smallint, $2::date, $3::int)`, [
      retention,
      first,
      days,
    ]);
}

async function copySequences(source: pg.Client, target: pg.Client, schema: string) {
  const { rows } = await source.query<{ name: string }>(
    "select sequencename as name from pg_sequences where schemaname = $1",
    [schema],
  );
  for (const { name } of rows) {
    const sequence = `${quoted(schema)}.${quoted(name)}`;
    const state = await source.query(`select last_value::text as last, is_called from ${sequence}`);
    const [{ last, is_called }] = state.rows as [{ last: string; is_called: boolean }];
    await target.query("select setval($1::regclass, $2::bigint, $3)", [sequence, last, is_called]);
  }
}

async function compare(target: pg.Client, schema: string, copied: readonly TableCount[]) {
  const arrived = new Map((await countRows(target, schema)).map((one) => [one.table, one.rows]));
  for (const { table, rows } of copied)
    if (arrived.get(table) !== rows)
      throw new Error(`${table}: ${rows} rows were sent, and ${arrived.get(table)} arrived`);
}

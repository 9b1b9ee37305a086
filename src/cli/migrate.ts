import { existsSync } from "node:fs";
import { join } from "node:path";
import { migrationScript, pendingMigrations } from "../client/pending-migrations.ts";
import { type Config, loadConfig } from "../config.ts";
import { startEmbedded } from "../store/postgres/embedded.ts";
import { asRefusedConnect } from "../store/postgres/failures.ts";
import { migrate as applyMigrations } from "../store/postgres/migrator.ts";
import { type Command, textOption, type Values } from "./command.ts";
import { withoutPassword } from "./database-url.ts";
import type { Terminal } from "./terminal.ts";

const help = `millrace migrate – bring the database's schema up to date

Usage: millrace migrate [options]

Applies the migrations that are missing, in order, each in a transaction of its own.
Workers of the previous version keep running meanwhile. Without DATABASE_URL it is
the embedded database that is migrated.

Some changes wait until no process of an earlier version runs any more, and such
processes are refused afterwards: --finish makes them. A new schema has them at once.

Options:
  --finish          no earlier version runs any more: make what has waited for that
  --dry-run         print the SQL that is missing, and change nothing
  --schema <name>   the schema to migrate (default: millrace)
  --data-dir <dir>  where the embedded database lives (default: MILLRACE_DATA_DIR or ./.millrace)
  -h, --help        this text

Examples:
  DATABASE_URL=postgres://localhost/app npx millrace migrate
  DATABASE_URL=postgres://localhost/app npx millrace migrate --dry-run > millrace.sql
  DATABASE_URL=postgres://localhost/app npx millrace migrate --finish
  npx millrace migrate --data-dir /var/lib/millrace
`;

export const migrate: Command = {
  name: "migrate",
  summary: "bring the database's schema up to date",
  help,
  options: {
    finish: { type: "boolean" },
    "dry-run": { type: "boolean" },
    schema: { type: "string" },
    "data-dir": { type: "string" },
  },
  async run(values: Values, terminal: Terminal): Promise<number> {
    const dataDir = textOption(values, "data-dir");
    const schema = textOption(values, "schema");
    const config = loadConfig({
      ...(dataDir === undefined ? {} : { dataDir }),
      ...(schema === undefined ? {} : { schema }),
    });
    const finish = values.finish === true;
    if (values["dry-run"] === true) await printPending(config, finish, terminal);
    else await onDatabase(config, (url) => apply(url, config.schema, finish, terminal));
    return 0;
  },
};

async function apply(
  url: string,
  schema: string,
  finish: boolean,
  terminal: Terminal,
): Promise<void> {
  let applied = 0;
  const { waiting } = await applyMigrations({
    url,
    schema,
    finish,
    onApplied: ({ version, name }) => {
      applied++;
      terminal.print(`applied ${String(version).padStart(4, "0")}_${name}`);
    },
  });
  const where = `schema "${schema}" of ${withoutPassword(url)}`;
  terminal.print(applied === 0 ? `Nothing to do: ${where} is up to date.` : `Done: ${where}.`);
  if (waiting)
    terminal.print("When no earlier version runs any more: npx millrace migrate --finish");
}

async function printPending(config: Config, finish: boolean, terminal: Terminal): Promise<void> {
  const isThere = config.databaseUrl !== undefined || existsSync(join(config.dataDir, "cluster"));
  const pending = isThere
    ? await onDatabase(config, (url) => pendingMigrations(url, config.schema, finish))
    : await pendingMigrations(undefined, config.schema, finish);
  if (pending.length === 0)
    terminal.print(`-- Nothing to do: schema "${config.schema}" is up to date.`);
  else terminal.print(migrationScript(pending, config.schema));
}

/** On DATABASE_URL, or on the embedded server, which is stopped again afterwards. */
async function onDatabase<T>(config: Config, work: (url: string) => Promise<T>): Promise<T> {
  const { databaseUrl, dataDir } = config;
  const server = databaseUrl === undefined ? await startEmbedded({ dataDir }) : undefined;
  try {
    return await work(databaseUrl ?? server?.url ?? "");
  } catch (error) {
    throw asRefusedConnect(error);
  } finally {
    await server?.stop();
  }
}

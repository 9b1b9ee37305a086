import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { verifyAudit } from "../client/audit.ts";
import { Millrace } from "../client/millrace.ts";
import { type Config, loadConfig } from "../config.ts";
import { type ErrorCode, MillraceError } from "../domain/errors.ts";
import { type EmbeddedServer, startEmbedded } from "../store/postgres/embedded.ts";
import { asRefusedConnect } from "../store/postgres/failures.ts";
import { migrate } from "../store/postgres/migrator.ts";
import {
  countRows,
  neighbours,
  notEmpty,
  occupied,
  type TableCount,
  transfer,
} from "../store/postgres/transfer.ts";
import { withClient } from "../store/postgres/with-client.ts";
import { type Command, CommandError, textOption, UsageError, type Values } from "./command.ts";
import { databaseChoice, databaseHelp, databaseOptions } from "./connect.ts";
import { withoutPassword } from "./database-url.ts";
import { exitCodes } from "./exit-codes.ts";
import { ProgressBar } from "./progress-bar.ts";
import { sum, summaryOf } from "./promote-summary.ts";
import type { Terminal } from "./terminal.ts";
import { count, plain } from "./text.ts";

const help = `millrace promote – from the embedded database to a PostgreSQL server

Usage: millrace promote --to <url> [options]

Copies everything: jobs that wait, what has ended, dead letters, queues, triggers, keys, breakers and
the audit trail. It is read as of one moment and written in one transaction: the server gets all of it
or nothing. Nothing may be at work on either side, and the server's schema must be empty. The embedded
database stays as it is.

Options:
  --to <url>         the server, as DATABASE_URL would name it
  --dry-run          say how many jobs, dead letters, queues … would be copied, and change nothing
${databaseHelp}
  --json             one JSON object instead of text
  -h, --help         this text

Examples:
  npx millrace promote --to postgres://app@db.example.org/app --dry-run
  npx millrace promote --to postgres://app@db.example.org/app
`;

export const promote: Command = {
  name: "promote",
  summary: "copy the embedded database into a PostgreSQL server",
  help,
  options: {
    to: { type: "string" },
    "dry-run": { type: "boolean" },
    ...databaseOptions,
    json: { type: "boolean" },
  },
  async run(values: Values, terminal: Terminal): Promise<number> {
    const to = textOption(values, "to");
    if (to === undefined) throw new UsageError("--to needs the server's URL.");
    // One that DATABASE_URL names does not count: what is copied is the embedded one.
    const config = loadConfig({ ...databaseChoice(values), databaseUrl: checkTarget(to) });
    const dataDir = resolve(config.dataDir);
    if (!existsSync(join(dataDir, "cluster")))
      throw new CommandError(
        `There is no embedded database in ${plain(dataDir)}.`,
        "Go to the folder where it is, or name its own with --data-dir.",
        exitCodes.notFound,
      );
    const server = await startEmbedded({ dataDir });
    try {
      const order = { from: server.url, to, schema: config.schema };
      const isRehearsal = values["dry-run"] === true;
      const copied = isRehearsal
        ? await rehearse(order)
        : await copy(order, server, config, terminal);
      report(copied, isRehearsal, { to, dataDir, json: values.json === true }, terminal);
    } catch (error) {
      throw explained(error, to);
    } finally {
      await server.stop();
    }
    return 0;
  },
};

/** Checked like any DATABASE_URL, in words that fit to where it was given. */
function checkTarget(to: string): string {
  if (/^postgres(?:ql)?:\/\//.test(to) && URL.canParse(to)) return to;
  throw new UsageError("--to must be the server's URL, such as postgres://app@db.example.org/app.");
}

interface Order {
  readonly from: string;
  readonly to: string;
  readonly schema: string;
}

async function rehearse({ from, to, schema }: Order): Promise<TableCount[]> {
  const full = await withClient(to, "promote", (client) => occupied(client, schema));
  if (full.length > 0) throw notEmpty(schema, full);
  return withClient(from, "promote", (client) => countRows(client, schema));
}

async function copy(
  order: Order,
  server: EmbeddedServer,
  config: Config,
  terminal: Terminal,
): Promise<TableCount[]> {
  const { from, to, schema } = order;
  if (server.joined) await refuseNeighbours(from, config.dataDir);
  // Before anything is changed there.
  const full = await withClient(to, "promote", (client) => occupied(client, schema));
  if (full.length > 0) throw notEmpty(schema, full);
  await migrate({ url: from, schema });
  await migrate({ url: to, schema });
  const counts = await withClient(from, "promote", (client) => countRows(client, schema));
  const bar = new ProgressBar(terminal, "copying", sum(counts));
  let done = 0;
  let copied: TableCount[];
  try {
    bar.show(0);
    copied = await transfer({
      ...order,
      onRows: (_, rows) => {
        done += rows;
        bar.show(done);
      },
    });
  } finally {
    bar.end();
  }
  await verify(to, schema);
  return copied;
}

async function refuseNeighbours(url: string, dataDir: string): Promise<never> {
  const others = await withClient(url, "promote", neighbours);
  const who = others.length === 0 ? "a process that has it open" : others.map(plain).join(", ");
  throw new CommandError(
    `The embedded database in ${plain(resolve(dataDir))} is in use by ${who}.`,
    "Stop millrace dev, your workers and everything else that uses it, then try again.",
    exitCodes.refused,
  );
}

/** The chain of the audit trail is made anew from what has arrived. */
async function verify(databaseUrl: string, schema: string): Promise<void> {
  const millrace = await Millrace.connect({ databaseUrl, schema, logLevel: "silent" });
  try {
    const found = await verifyAudit(millrace.store.service.audit);
    if (!found.ok)
      throw new CommandError(
        `All rows have arrived, but the audit trail is broken at entry ${found.brokenAt}: ${found.problem}.`,
        "It was broken before: npx millrace audit verify says so on the embedded database too.",
      );
  } finally {
    await millrace.stop();
  }
}

function report(
  copied: readonly TableCount[],
  isRehearsal: boolean,
  { to, dataDir, json }: { to: string; dataDir: string; json: boolean },
  terminal: Terminal,
): void {
  if (json) {
    const tables = copied.filter(({ rows }) => rows > 0);
    const rows = Object.fromEntries(tables.map((one) => [one.table, one.rows]));
    return void terminal.print(JSON.stringify({ dry_run: isRehearsal, total: sum(copied), rows }));
  }
  terminal.print(summaryOf(copied));
  const rows = count(sum(copied), "row");
  if (isRehearsal) terminal.print(`${rows} would be copied. Nothing was changed.`);
  else
    terminal.print(
      `${rows} copied to ${plain(withoutPassword(to))}; the audit trail is whole.
Next: set DATABASE_URL for all your processes, and start them.
What is in ${plain(dataDir)} stays there as it was: start nothing on it any more.`,
    );
}

function explained(error: unknown, to: string): unknown {
  if (error instanceof CommandError) return error;
  const met = asRefusedConnect(error);
  const why = error instanceof Error ? error.message : String(error);
  if (met instanceof MillraceError && aboutServer.has(met.code))
    return new CommandError(
      `${withoutPassword(to)} ${serverDid[met.code] ?? "refused"}: ${why}. Nothing was copied.`,
      "Check that the server runs, and host, port, user, password and database of --to.",
      exitCodes.failed,
      met,
    );
  if (met instanceof MillraceError) return met;
  return new CommandError(
    `It could not be copied: ${why}. The transaction was rolled back, so the server has nothing of it.`,
    "Mend that, then try again.",
    exitCodes.failed,
    error,
  );
}

const serverDid: Partial<Record<ErrorCode, string>> = {
  DATABASE_UNAVAILABLE: "cannot be reached, or went away",
  DATABASE_REFUSED: "refused",
  DATABASE_READ_ONLY: "is read-only",
};
const aboutServer = new Set(Object.keys(serverDid));

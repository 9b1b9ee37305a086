import { Millrace } from "../client/millrace.ts";
import { createLog } from "../runtime/log.ts";
import { textOption, type Values } from "./command.ts";
import type { Terminal } from "./terminal.ts";

/** What every command that works on the database takes. */
export const databaseOptions = {
  "data-dir": { type: "string" },
  schema: { type: "string" },
} as const;

export const databaseHelp = `  --data-dir <dir>   where the embedded database lives (default: MILLRACE_DATA_DIR or ./.millrace)
  --schema <name>    the schema to work on (default: millrace)`;

export function connect(values: Values, terminal: Terminal): Promise<Millrace> {
  const dataDir = textOption(values, "data-dir");
  const schema = textOption(values, "schema");
  const logLevel = terminal.settings.logLevel ?? "silent";
  return Millrace.connect({
    ...(dataDir === undefined ? {} : { dataDir }),
    ...(schema === undefined ? {} : { schema }),
    logLevel,
    log: createLog(logLevel, "stderr"),
  });
}

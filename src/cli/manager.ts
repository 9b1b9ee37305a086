import { Millrace } from "../client/millrace.ts";
import { loadHttpSettings } from "../config.ts";
import { MetricsServer } from "../http/metrics-server.ts";
import type { Manager } from "../manager/manager.ts";
import { systemClock } from "../runtime/clock.ts";
import { createLog } from "../runtime/log.ts";
import { type Command, numberOption, textOption, type Values } from "./command.ts";
import { withoutPassword } from "./database-url.ts";
import { listening } from "./http-service.ts";
import { StopRequest } from "./stop-request.ts";
import type { Terminal } from "./terminal.ts";
import { untilStopped } from "./waiting.ts";

const help = `millrace manager – keep the queue healthy

Usage: millrace manager [options]

Makes delayed jobs ready, takes jobs back from workers that died, fires triggers, tells
webhooks, and clears away what is past its retention. Start as many as you like: one of them
is leader, the others wait to take over. Without DATABASE_URL it works on the embedded
database. Ctrl-C stops it.

Options:
  --data-dir <dir>   where the embedded database lives (default: MILLRACE_DATA_DIR or ./.millrace)
  --schema <name>    the schema to work on (default: millrace)
  --election <how>   postgres or redis: where the leader is elected (default: postgres)
  --metrics-port <n> serve /metrics here, without a key (0: any port that is free)
  --for <seconds>    stop after this time
  --json             one JSON line per change instead of text
  -h, --help         this text

Examples:
  DATABASE_URL=postgres://localhost/app npx millrace manager
  npx millrace manager --for 60 --json
`;

export const manager: Command = {
  name: "manager",
  summary: "keep the queue healthy: schedule, reclaim, fire triggers, clear away",
  help,
  options: {
    "data-dir": { type: "string" },
    schema: { type: "string" },
    election: { type: "string" },
    "metrics-port": { type: "string" },
    for: { type: "string" },
    json: { type: "boolean" },
  },
  async run(values: Values, terminal: Terminal): Promise<number> {
    const seconds = numberOption(values, "for", { min: 0, max: 1_000_000 });
    const port = numberOption(values, "metrics-port", { min: 0, max: 65_535 });
    const stop = new StopRequest(terminal);
    const millrace = await connect(values, terminal);
    const { host } = loadHttpSettings();
    const metrics = port === undefined ? null : new MetricsServer({ millrace, host, port });
    try {
      if (metrics !== null)
        await listening({ host, port: port ?? 0, option: "--metrics-port" }, () => metrics.start());
      const manager = await millrace.manage();
      tell(millrace, manager, metrics?.url, values.json === true, terminal);
      await untilStopped(stop.signal, seconds);
    } finally {
      await metrics?.stop();
      await millrace.stop();
      stop.release();
    }
    return 0;
  },
};

function connect(values: Values, terminal: Terminal): Promise<Millrace> {
  const dataDir = textOption(values, "data-dir");
  const schema = textOption(values, "schema");
  const election = textOption(values, "election") as "postgres" | undefined;
  const logLevel = terminal.settings.logLevel ?? "silent";
  return Millrace.connect({
    ...(dataDir === undefined ? {} : { dataDir }),
    ...(schema === undefined ? {} : { schema }),
    ...(election === undefined ? {} : { election }),
    logLevel,
    log: createLog(logLevel, "stderr"),
  });
}

function tell(
  millrace: Millrace,
  manager: Manager,
  metricsUrl: string | undefined,
  json: boolean,
  terminal: Terminal,
): void {
  const say = (text: string, fields: object) => {
    const at = systemClock.now().toISOString();
    terminal.print(json ? JSON.stringify({ at, manager: manager.id, ...fields }) : text);
  };
  const { events } = millrace;
  say(`Manager of ${withoutPassword(millrace.databaseUrl)}; Ctrl-C stops it.`, {
    state: "waiting",
    ...(metricsUrl === undefined ? {} : { metrics: metricsUrl }),
  });
  if (metricsUrl !== undefined && !json) terminal.print(`Metrics at ${metricsUrl}.`);
  events.on("leader.elected", ({ term }) =>
    say(`Leader for term ${term}.`, { state: "leader", term }),
  );
  events.on("leader.lost", ({ term, reason }) =>
    say(`No longer leader: term ${term} is over (${reason.replace("_", " ")}).`, {
      ...{ state: "waiting", term, reason, services: manager.reports },
    }),
  );
  events.on("service.failed", ({ service, error }) => {
    const message = error instanceof Error ? error.message : String(error);
    terminal.printError(`${service}: ${message}`);
  });
}

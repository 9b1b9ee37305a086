import { resolve } from "node:path";
import { Millrace } from "../client/millrace.ts";
import { loadConfig, loadHttpSettings } from "../config.ts";
import { newSecret } from "../http/api-key-text.ts";
import { systemClock } from "../runtime/clock.ts";
import type { HttpSettings } from "../runtime/http-settings.ts";
import { createLog } from "../runtime/log.ts";
import { deleteEmbedded, type EmbeddedServer, startEmbedded } from "../store/postgres/embedded.ts";
import { type Command, numberOption, textOption, type Values, wholeOption } from "./command.ts";
import { type Demo, startDemo } from "./demo.ts";
import { leavePresence, readPresence } from "./dev-presence.ts";
import { type Api, DevReport } from "./dev-report.ts";
import { startHttp, startHttpNearby } from "./http-service.ts";
import { ProgressReader } from "./progress.ts";
import { StopRequest } from "./stop-request.ts";
import type { Terminal } from "./terminal.ts";

const help = `millrace dev – a queue to try things with

Usage: millrace dev [options]

In one process: an embedded PostgreSQL, a manager, the HTTP service, and a demo that makes and runs jobs
in several queues, for several tenants, with priorities, delays, triggers, a platform that fails now and
then, and one kind of job that always does. Ctrl-C lets running jobs finish and stops; the data stays.
Started twice on one folder, the second says where the first is and joins its database.

The HTTP service listens on HOST and PORT (127.0.0.1:7070, or the next port that is free) and accepts
MILLRACE_ADMIN_KEY, or a key that is made for this run and printed.

Options:
  --data-dir <dir>         where the data lives (default: MILLRACE_DATA_DIR or ./.millrace)
  --fresh                  delete that data first
  --no-demo                no demo jobs: bring your own producers and workers
  --jobs-per-second <n>    how many demo jobs to make (default: 20)
  --port <number>          exactly this port; 0: any that is free
  --for <seconds>          stop after this time
  --json                   one JSON line a second instead of text
  -h, --help               this text

Examples:
  npx millrace dev
  npx millrace dev --fresh --jobs-per-second 500
  npx millrace dev --for 10 --json | tail -1
  npx millrace dev --no-demo &  npx millrace worker ./jobs.ts      (both use ./.millrace)
`;

interface DevOptions {
  readonly dataDir: string;
  readonly fresh: boolean;
  readonly demo: boolean;
  readonly json: boolean;
  readonly jobsPerSecond: number;
  readonly ignoresDatabaseUrl: boolean;
  readonly forMs: number | undefined;
  readonly http: HttpSettings;
}

export const dev: Command = {
  name: "dev",
  summary: "an embedded database with demo jobs to watch",
  help,
  options: {
    "data-dir": { type: "string" },
    fresh: { type: "boolean" },
    "no-demo": { type: "boolean" },
    "jobs-per-second": { type: "string" },
    port: { type: "string" },
    for: { type: "string" },
    json: { type: "boolean" },
  },
  async run(values: Values, terminal: Terminal): Promise<number> {
    const options = readOptions(values);
    const stop = new StopRequest(terminal);
    const report = new DevReport(terminal, options.json);
    try {
      await runUntilStopped(options, report, stop, terminal);
    } catch (error) {
      // Ctrl-C also reaches the programs that create the database.
      if (report.hasStarted || !stop.signal.aborted) throw error;
    } finally {
      stop.release();
    }
    return 0;
  },
};

function readOptions(values: Values): DevOptions {
  const seconds = numberOption(values, "for", { min: 0, max: 1_000_000 });
  const { dataDir, databaseUrl } = loadConfig();
  const settings = loadHttpSettings();
  const port = wholeOption(values, "port", { min: 0, max: 65_535 });
  return {
    http: port === undefined ? settings : { ...settings, port, portIsGiven: true },
    dataDir: resolve(textOption(values, "data-dir") ?? dataDir),
    fresh: values.fresh === true,
    demo: values["no-demo"] !== true,
    json: values.json === true,
    jobsPerSecond: numberOption(values, "jobs-per-second", { min: 0.1, max: 10_000 }) ?? 20,
    ignoresDatabaseUrl: databaseUrl !== undefined,
    forMs: seconds === undefined ? undefined : seconds * 1_000,
  };
}

async function runUntilStopped(
  options: DevOptions,
  report: DevReport,
  stop: StopRequest,
  terminal: Terminal,
): Promise<void> {
  const { dataDir } = options;
  if (options.fresh) {
    await deleteEmbedded({ dataDir });
    report.deleted(dataDir);
  }
  const server = await startEmbedded({
    dataDir,
    log: (message) => message.startsWith("creating") && report.creating(),
  });
  try {
    const first = await readPresence(dataDir);
    if (first !== null) report.found(first);
    const millrace = await connect(server, terminal);
    try {
      await serveAndWatch(millrace, server, options, report, stop.signal);
    } finally {
      await millrace.stop();
    }
  } finally {
    await server.stop();
  }
  report.stopped(dataDir, server.joined);
}

async function connect(server: EmbeddedServer, terminal: Terminal): Promise<Millrace> {
  const logLevel = terminal.settings.logLevel ?? "silent";
  const log = createLog(logLevel, "stderr");
  return Millrace.connect({ databaseUrl: server.url, logLevel, log });
}

async function serveAndWatch(
  millrace: Millrace,
  server: EmbeddedServer,
  options: DevOptions,
  report: DevReport,
  stopped: AbortSignal,
): Promise<void> {
  const { dataDir, http } = options;
  const api = await startApi(millrace, http);
  const isFirst = (await readPresence(dataDir)) === null;
  const leave = isFirst ? await leavePresence(dataDir, api.server.url) : async () => undefined;
  try {
    report.serving(api);
    await watch(millrace, server, options, report, stopped);
  } finally {
    await leave();
    await api.server.stop();
  }
}

/** On the next free port when the usual one is taken, unless one was asked for. */
async function startApi(millrace: Millrace, settings: HttpSettings): Promise<Api> {
  const { port, portIsGiven } = settings;
  const adminKey = settings.adminKey ?? newSecret();
  const start = portIsGiven ? startHttp : startHttpNearby;
  const { server, hasDashboard } = await start({ ...settings, millrace, adminKey });
  return {
    ...{ server, hasDashboard },
    madeKey: settings.adminKey === undefined ? adminKey : null,
    wantedPort: portIsGiven ? null : port,
  };
}

async function watch(
  millrace: Millrace,
  server: EmbeddedServer,
  options: DevOptions,
  report: DevReport,
  stopped: AbortSignal,
): Promise<void> {
  if (stopped.aborted) return;
  await millrace.manage();
  const demo: Demo | null = options.demo ? await startDemo(millrace, options.jobsPerSecond) : null;
  const running = () => demo?.worker.busy ?? 0;
  const reader = new ProgressReader(millrace, running, () => systemClock.monotonic());
  report.started(options, server);
  report.listenTo(millrace);
  const until = systemClock.monotonic() + (options.forMs ?? Number.POSITIVE_INFINITY);
  await report.begin(reader);
  for (;;) {
    const leftMs = until - systemClock.monotonic();
    if (stopped.aborted || leftMs <= 0) break;
    await systemClock.sleep(Math.min(report.intervalMs, leftMs), stopped);
    await report.tick(reader);
  }
  report.stopping(running());
  await demo?.stop();
  await report.end(reader);
}

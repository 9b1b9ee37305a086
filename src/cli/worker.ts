import { Millrace } from "../client/millrace.ts";
import type { EventMap } from "../runtime/events.ts";
import { createLog } from "../runtime/log.ts";
import type { AnyJobDefinition } from "../worker/job-definition.ts";
import {
  type Command,
  durationOption,
  listOption,
  numberOption,
  textOption,
  UsageError,
  type Values,
  wholeOption,
} from "./command.ts";
import { databaseChoice, databaseHelp, databaseOptions } from "./connect.ts";
import { withoutPassword } from "./database-url.ts";
import { demoHandlers } from "./demo-handlers.ts";
import { StopRequest } from "./stop-request.ts";
import type { Terminal } from "./terminal.ts";
import { createTerminalLog } from "./terminal-log.ts";
import { count, plain } from "./text.ts";
import { findModule, type Loaded, loadDefinitions } from "./user-modules.ts";
import { untilStopped } from "./waiting.ts";
import { watchWorker } from "./worker-watch.ts";

const help = `millrace worker – run your jobs

Usage: millrace worker <module…> [options]
       millrace worker --demo [options]

Runs every job that these modules export: what defineJob returned, by name, as default, or in a list.
Modules are JavaScript or TypeScript files of this machine. Ctrl-C lets running jobs finish and stops;
Ctrl-C again stops at once, and what ran is run again elsewhere.

Options:
  --concurrency <n>  how many jobs at once (default: 10)
  --queues <a,b>     serve exactly these queues (default: those of the jobs)
  --watch            start again when a file beside the modules changes, after draining
  --demo             also run two built-in jobs: echo gives back its payload, dummy takes {"ms":…}
  --drain <time>     how long running jobs may take to finish when it stops (default: 30s)
  --name <name>      what the worker is called (default: host:process:…)
  --for <seconds>    stop after this time
${databaseHelp}
  --json             JSON lines instead of text: events, and the log on standard error
  -h, --help         this text

Examples:
  npx millrace worker ./jobs.ts
  npx millrace worker ./mail.js ./reports.js --concurrency 50
  npx millrace worker ./jobs.ts --watch
  npx millrace worker --demo &  npx millrace enqueue echo '{"hello":"world"}' --wait 10s
`;

export const worker: Command = {
  name: "worker",
  summary: "run the jobs that your modules export",
  help,
  takesWords: true,
  options: {
    concurrency: { type: "string" },
    queues: { type: "string" },
    watch: { type: "boolean" },
    demo: { type: "boolean" },
    drain: { type: "string" },
    name: { type: "string" },
    for: { type: "string" },
    ...databaseOptions,
    json: { type: "boolean" },
  },
  async run(values: Values, terminal: Terminal, words: readonly string[]): Promise<number> {
    const options = readOptions(values);
    if (words.length === 0 && !options.demo)
      throw new UsageError("Which modules? Or try the built-in jobs with --demo.");
    const paths = words.map(findModule);
    if (values.watch === true) return watchWorker(values, terminal, paths);
    const stop = new StopRequest(terminal);
    try {
      const loaded = await loadDefinitions(paths);
      await work(loaded, options, values, terminal, stop.signal);
    } finally {
      stop.release();
    }
    return 0;
  },
};

interface WorkerOptions {
  readonly concurrency: number;
  readonly queues: readonly string[] | undefined;
  readonly demo: boolean;
  readonly drainMs: number | undefined;
  readonly name: string | undefined;
  readonly seconds: number | undefined;
}

function readOptions(values: Values): WorkerOptions {
  return {
    concurrency: wholeOption(values, "concurrency", { min: 1, max: 10_000 }) ?? 10,
    queues: listOption(values, "queues"),
    demo: values.demo === true,
    drainMs: durationOption(values, "drain"),
    name: textOption(values, "name"),
    seconds: numberOption(values, "for", { min: 0, max: 1_000_000 }),
  };
}

async function work(
  { definitions, withoutHandler }: Loaded,
  options: WorkerOptions,
  values: Values,
  terminal: Terminal,
  stopped: AbortSignal,
): Promise<void> {
  const { concurrency, drainMs, name, queues } = options;
  const known = new Set(definitions.map(({ type }) => type));
  const demo = options.demo ? demoHandlers.filter(({ type }) => !known.has(type)) : [];
  const jobs = inQueues([...definitions, ...demo], queues);
  const millrace = await connect(values, terminal);
  try {
    const report = new WorkerReport(terminal, values.json === true);
    const running = await millrace.work(jobs, {
      concurrency,
      ...(queues === undefined ? {} : { queues }),
      ...(drainMs === undefined ? {} : { drainMs }),
      ...(name === undefined ? {} : { name }),
    });
    const served = queues ?? [...new Set(jobs.map(({ queue }) => queue))];
    const types = jobs.map(({ type }) => type);
    report.started(millrace, { worker: running.name, types, queues: served }, withoutHandler);
    await untilStopped(stopped, options.seconds);
    report.stopping(running.busy);
    await running.stop();
    report.stopped();
  } finally {
    await millrace.stop();
  }
}

/** A worker serves the queues of its definitions; told otherwise, every definition is at home there. */
function inQueues(
  definitions: readonly AnyJobDefinition[],
  queues: readonly string[] | undefined,
): AnyJobDefinition[] {
  const [home] = queues ?? [];
  if (queues === undefined || home === undefined) return [...definitions];
  return definitions.map((one) => (queues.includes(one.queue) ? one : { ...one, queue: home }));
}

/** What handlers log is shown: that is what they log it for. As text or as JSON, never both. */
function connect(values: Values, terminal: Terminal): Promise<Millrace> {
  const logLevel = terminal.settings.logLevel ?? "info";
  const log =
    values.json === true
      ? createLog(logLevel, "stderr")
      : createTerminalLog(terminal, terminal.settings.logLevel ?? "warn", logLevel);
  return Millrace.connect({ ...databaseChoice(values), logLevel, log });
}

interface Started {
  readonly worker: string;
  readonly types: readonly string[];
  readonly queues: readonly string[];
}

class WorkerReport {
  readonly #terminal: Terminal;
  readonly #json: boolean;
  readonly #ended = { completed: 0, retried: 0, dead: 0, other: 0 };

  constructor(terminal: Terminal, json: boolean) {
    this.#terminal = terminal;
    this.#json = json;
  }

  started(millrace: Millrace, about: Started, withoutHandler: readonly string[]): void {
    const { worker, types, queues } = about;
    const ofQueues = queues.length === 1 ? "of queue" : "of queues";
    this.#say({ state: "started", ...about }, () => [
      `Worker ${plain(worker)} of ${withoutPassword(millrace.databaseUrl)}; Ctrl-C stops it.`,
      `It runs ${types.map(plain).join(", ")} ${ofQueues} ${queues.map(plain).join(", ")}.`,
    ]);
    if (withoutHandler.length > 0 && !this.#json)
      this.#terminal.printError(
        `Without a run function, so not run here: ${withoutHandler.map(plain).join(", ")}.`,
      );
    millrace.events.on("job.settled", (event) => this.#settled(event));
  }

  #settled({ id, type, outcome, attempt, durationMs }: EventMap["job.settled"]): void {
    const { kind } = outcome;
    if (kind === "completed" || kind === "retried" || kind === "dead") this.#ended[kind]++;
    else this.#ended.other++;
    const error = "error" in outcome ? outcome.error : undefined;
    this.#say(
      {
        state: kind,
        id,
        type,
        attempt,
        duration_ms: Math.round(durationMs),
        error: error?.message,
      },
      () => {
        if (kind === "completed" && !this.#terminal.isInteractive) return [];
        const colour = kind === "completed" ? "green" : kind === "dead" ? "red" : "yellow";
        const why = error === undefined ? "" : `  ${plain(error.message)}`;
        const took = `${Math.round(durationMs)} ms`;
        return [
          `${this.#terminal.style(colour, kind.padEnd(9))}  ${id}  ${plain(type)}  ${took}${why}`,
        ];
      },
    );
  }

  stopping(running: number): void {
    this.#say({ state: "stopping", running }, () => [
      `Stopping (${running} running); Ctrl-C again to stop at once.`,
    ]);
  }

  stopped(): void {
    const { completed, retried, dead } = this.#ended;
    this.#say({ state: "stopped", ...this.#ended }, () => [
      `Stopped after ${count(completed, "job")} completed, ${retried} retried, ${dead} dead.`,
    ]);
  }

  #say(fields: object, lines: () => string[]): void {
    if (this.#json) this.#terminal.print(JSON.stringify(fields));
    else for (const line of lines()) this.#terminal.print(line);
  }
}

import type { Millrace } from "../client/millrace.ts";
import type { Job } from "../domain/job.ts";
import { summaryView } from "../http/views.ts";
import { systemClock } from "../runtime/clock.ts";
import type { JobFilter, JobSummary } from "../store/job-search.ts";
import { type Command, numberOption, type Values, wholeOption } from "./command.ts";
import { databaseHelp, databaseOptions, withMillrace } from "./connect.ts";
import { errorOf, filterHelp, filterOptions, readFilter } from "./jobs-list.ts";
import { StopRequest } from "./stop-request.ts";
import type { Terminal } from "./terminal.ts";
import { clip, plain } from "./text.ts";

const help = `millrace jobs tail – follow jobs as they come and change

Usage: millrace jobs tail [options]

Prints a line when a job is made and each time its state changes: ready, running, completed,
scheduled (it is tried again), dead. Looks once a second, so what begins and ends in between
is one line. Ctrl-C stops it.

Options:
${filterHelp}
  --lines <n>        begin with so many that are there already (default: 10)
  --for <seconds>    stop after this time
${databaseHelp}
  --json             one JSON line per change
  -h, --help         this text

Examples:
  npx millrace jobs tail
  npx millrace jobs tail --queue mail --lines 0
  npx millrace jobs tail --state dead --json | jq -r .error_message
`;

export const jobsTail: Command = {
  name: "jobs tail",
  summary: "follow jobs as they come and change",
  help,
  options: {
    ...filterOptions,
    lines: { type: "string" },
    for: { type: "string" },
    ...databaseOptions,
    json: { type: "boolean" },
  },
  async run(values: Values, terminal: Terminal): Promise<number> {
    const lines = wholeOption(values, "lines", { min: 0, max: 1_000 }) ?? 10;
    const seconds = numberOption(values, "for", { min: 0, max: 1_000_000 });
    const wanted = readFilter(values);
    const stop = new StopRequest(terminal);
    try {
      return await withMillrace(values, terminal, async (millrace) => {
        const { states, ...filter } = await wanted(millrace.store);
        const show = (job: JobSummary) => {
          if (states === undefined || states.includes(job.state))
            terminal.print(values.json === true ? changeJson(job) : changeLine(job, terminal));
        };
        const tail = new Tail(millrace, filter, show, (text) => terminal.printError(text));
        await tail.begin(lines);
        const untilMs = systemClock.monotonic() + (seconds ?? Number.POSITIVE_INFINITY) * 1_000;
        while (!stop.signal.aborted && systemClock.monotonic() < untilMs) {
          await systemClock.sleep(intervalMs, stop.signal);
          if (!stop.signal.aborted) await tail.look();
        }
        return 0;
      });
    } finally {
      stop.release();
    }
  },
};

const intervalMs = 1_000;
const page = 200;
/** In one look; above that the reader could not follow anyway. */
const mostNew = 2_000;
const mostFollowed = 5_000;

/** Ids are made by clients: a job may be stored a little after one with a later id. */
const lateMs = 10_000;

/** What was seen of each job that has not ended; what is newer than the floor and unseen is new. */
class Tail {
  readonly #millrace: Millrace;
  readonly #filter: JobFilter;
  readonly #show: (job: JobSummary) => void;
  readonly #say: (text: string) => void;
  readonly #open = new Map<string, string>();
  #seen = new Set<string>();
  #floor = "";

  constructor(
    millrace: Millrace,
    filter: JobFilter,
    show: (job: JobSummary) => void,
    say: (text: string) => void,
  ) {
    this.#millrace = millrace;
    this.#filter = filter;
    this.#show = show;
    this.#say = say;
  }

  async begin(lines: number): Promise<void> {
    const { jobs } = await this.#read(null, page);
    for (const [at, job] of [...jobs].reverse().entries()) {
      this.#note(job);
      if (at >= jobs.length - lines) this.#show(job);
    }
    this.#floor = jobs.at(-1)?.id ?? "";
    this.#raiseFloor();
  }

  async look(): Promise<void> {
    await this.#changed();
    for (const job of (await this.#fresh()).reverse()) {
      this.#note(job);
      this.#show(job);
    }
    this.#raiseFloor();
  }

  /** The first 48 bits of an id are its time in milliseconds. */
  #raiseFloor(): void {
    const newest = [...this.#seen].reduce((a, b) => (a > b ? a : b), "");
    if (newest === "") return;
    const ms = Number.parseInt(newest.replaceAll("-", "").slice(0, 12), 16) - lateMs;
    const hex = Math.max(0, ms).toString(16).padStart(12, "0");
    this.#floor = `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
    this.#seen = new Set([...this.#seen].filter((id) => id > this.#floor));
  }

  async #fresh(): Promise<JobSummary[]> {
    const fresh: JobSummary[] = [];
    for (let before: string | null = null; ; ) {
      const { jobs, next } = await this.#read(before, page);
      fresh.push(...jobs.filter(({ id }) => id > this.#floor && !this.#seen.has(id)));
      if (next === null || next <= this.#floor) return fresh;
      if (fresh.length >= mostNew) {
        this.#say(
          `… more than ${mostNew.toLocaleString("en")} new jobs in a second: the newest are shown`,
        );
        return fresh;
      }
      before = next;
    }
  }

  async #changed(): Promise<void> {
    const ids = [...this.#open.keys()];
    for (let at = 0; at < ids.length; at += 1_000) {
      const some = ids.slice(at, at + 1_000);
      const found = await this.#millrace.store.find(some);
      const left = new Set(some);
      for (const job of found.map(toSummary)) {
        left.delete(job.id);
        if (this.#open.get(job.id) === stampOf(job)) continue;
        this.#note(job);
        this.#show(job);
      }
      for (const id of left) this.#open.delete(id);
    }
  }

  #note(job: JobSummary): void {
    this.#seen.add(job.id);
    if (job.finishedAt !== null) this.#open.delete(job.id);
    else if (this.#open.size < mostFollowed || this.#open.has(job.id))
      this.#open.set(job.id, stampOf(job));
  }

  #read(before: string | null, limit: number) {
    return this.#millrace.store.service.readsOf(null).search.jobs(this.#filter, before, limit);
  }
}

const stampOf = ({ state, attempt, dueAt }: JobSummary) =>
  `${state} ${attempt} ${dueAt?.getTime()}`;

const toSummary = (job: Job): JobSummary => ({
  ...job,
  queueId: 0,
  errorClass: job.error?.class ?? null,
  errorMessage: job.error?.message ?? null,
});

const changeJson = (job: JobSummary): string =>
  JSON.stringify({ at: momentOf(job).toISOString(), ...summaryView(job) });

const momentOf = (job: JobSummary): Date => job.finishedAt ?? job.startedAt ?? job.createdAt;

const colours = {
  completed: "green",
  dead: "red",
  running: "cyan",
  scheduled: "yellow",
} as const;

function changeLine(job: JobSummary, terminal: Terminal): string {
  const { state, attempt, maxAttempts, id, type, queue, tenant } = job;
  const time = momentOf(job).toISOString().slice(11, 19);
  const due = job.dueAt === null ? "" : `due ${job.dueAt.toISOString().slice(11, 19)}`;
  const tail = [
    plain(type),
    plain(queue),
    tenant === "default" ? "" : plain(tenant),
    `${attempt}/${maxAttempts}`,
    due,
    plain(errorOf(job)),
  ];
  const text = tail.filter((part) => part !== "").join("  ");
  const room = terminal.isInteractive ? terminal.columns - 59 : Number.POSITIVE_INFINITY;
  const colour = colours[state as keyof typeof colours];
  const shown = state.padEnd(9);
  const styled = colour === undefined ? shown : terminal.style(colour, shown);
  return `${time}  ${styled}  ${id}  ${clip(text, Math.max(20, room))}`;
}

import { type JobState, jobStates } from "../domain/job-state.ts";
import { suggest } from "../domain/suggest.ts";
import { summaryView } from "../http/views.ts";
import { systemClock } from "../runtime/clock.ts";
import type { JobFilter, JobSummary } from "../store/job-search.ts";
import type { Store } from "../store/store.ts";
import {
  type Command,
  durationOption,
  listOption,
  textOption,
  UsageError,
  type Values,
  wholeOption,
} from "./command.ts";
import { databaseHelp, databaseOptions, withMillrace } from "./connect.ts";
import type { Terminal } from "./terminal.ts";
import { ago, type Column, count, table, when } from "./text.ts";

/** Which jobs; `jobs` and `jobs tail` share them. */
export const filterOptions = {
  queue: { type: "string" },
  type: { type: "string" },
  state: { type: "string" },
  tenant: { type: "string" },
} as const;

export const filterHelp = `  --queue <name>     only of this queue
  --type <type>      only of this type
  --state <states>   only in these states: ${jobStates.slice(0, 4).join(", ")},
                     ${jobStates.slice(4).join(", ")}
  --tenant <tenant>  only of this tenant`;

const help = `millrace jobs – find jobs, the newest first

Usage: millrace jobs [options]
       millrace jobs show|tail|cancel|retry …      (millrace jobs show --help)

Options:
${filterHelp}
  --key <key>        the one with this idempotency key
  --reference <ref>  those with this reference
  --correlation <c>  those with this correlation id
  --since <time>     made in this time: 30s, 10m, 2h, 1d
  --before <id>      made before this job: the next page
  --limit <n>        how many (default: 20, at most 1,000)
${databaseHelp}
  --json             one JSON line per job
  -h, --help         this text

Examples:
  npx millrace jobs
  npx millrace jobs --state dead,expired --since 1h
  npx millrace jobs --queue mail --state ready --limit 100
  npx millrace jobs --json --state dead | jq -r .id
`;

export const jobsList: Command = {
  name: "jobs",
  summary: "find jobs, the newest first",
  help,
  options: {
    ...filterOptions,
    key: { type: "string" },
    reference: { type: "string" },
    correlation: { type: "string" },
    since: { type: "string" },
    before: { type: "string" },
    limit: { type: "string" },
    ...databaseOptions,
    json: { type: "boolean" },
  },
  async run(values: Values, terminal: Terminal): Promise<number> {
    const limit = wholeOption(values, "limit", { min: 1, max: 1_000 }) ?? 20;
    const sinceMs = durationOption(values, "since");
    const wanted = readFilter(values);
    const before = textOption(values, "before") ?? null;
    if (before !== null && !/^[0-9a-f-]{36}$/i.test(before))
      throw new UsageError("--before is the id of a job.");
    return withMillrace(values, terminal, async ({ store }) => {
      const now = systemClock.now();
      const filter: JobFilter = {
        ...(await wanted(store)),
        key: textOption(values, "key"),
        reference: textOption(values, "reference"),
        correlationId: textOption(values, "correlation"),
        createdFrom: sinceMs === undefined ? undefined : new Date(now.getTime() - sinceMs),
      };
      const found = await findJobs(store, filter, before, limit);
      if (values.json === true)
        for (const job of found.jobs) terminal.print(JSON.stringify(summaryView(job)));
      else printJobs(found, now, terminal);
      return 0;
    });
  },
};

interface Found {
  readonly jobs: readonly JobSummary[];
  readonly next: string | null;
  /** The walk was given up: there may be more that fit. */
  readonly gaveUp: boolean;
}

const mostPages = 50;

/** A page may be short, even empty: goes on until there are enough, but not through all there is. */
async function findJobs(
  { service }: Store,
  filter: JobFilter,
  before: string | null,
  limit: number,
): Promise<Found> {
  const jobs: JobSummary[] = [];
  let next = before;
  for (let pages = 0; pages < mostPages; pages++) {
    const page = await service.readsOf(null).search.jobs(filter, next, limit - jobs.length);
    jobs.push(...page.jobs);
    next = page.next;
    if (next === null || jobs.length >= limit) return { jobs, next, gaveUp: false };
  }
  return { jobs, next, gaveUp: true };
}

/** What was asked, and, as soon as there is a store, the filter it comes to. */
export function readFilter(values: Values): (store: Store) => Promise<JobFilter> {
  const states = listOption(values, "state")?.map(stateOf);
  const tenant = textOption(values, "tenant");
  const queue = textOption(values, "queue");
  const type = textOption(values, "type");
  return async ({ service }) => {
    if (queue === undefined) return { tenant, type, states };
    const queues = await service.queues.list(tenant ?? null);
    const queueIds = queues.filter(({ name }) => name === queue).map(({ id }) => id);
    return { tenant, type, states, queueIds };
  };
}

function stateOf(word: string): JobState {
  const state = jobStates.find((one) => one === word);
  if (state !== undefined) return state;
  const meant = suggest(word, jobStates);
  const hint = meant === undefined ? `; there are ${jobStates.join(", ")}` : `: "${meant}"?`;
  throw new UsageError(`There is no state "${word}"${hint}.`);
}

export const errorOf = ({ errorClass, errorMessage }: JobSummary): string =>
  errorMessage === null ? "" : `${errorClass}: ${errorMessage}`;

function printJobs({ jobs, next, gaveUp }: Found, now: Date, terminal: Terminal): void {
  const columns: Column<JobSummary>[] = [
    { title: "ID", value: ({ id }) => id },
    { title: "STATE", value: ({ state }) => state },
    { title: "TYPE", value: ({ type }) => type },
    { title: "QUEUE", value: ({ queue }) => queue },
    { title: "TENANT", value: ({ tenant }) => tenant },
    { title: "TRY", value: ({ attempt, maxAttempts }) => `${attempt}/${maxAttempts}` },
    { title: "WHEN", value: (job) => momentOf(job, now) },
    { title: "ERROR", value: errorOf },
  ];
  const width = terminal.isInteractive ? terminal.columns : undefined;
  if (jobs.length > 0) terminal.print(table(columns, jobs, width));
  if (jobs.length === 0 && !gaveUp)
    terminal.printError(
      "No job fits. A first one: npx millrace enqueue echo '{\"hello\":1}' && npx millrace worker --demo",
    );
  if (gaveUp) terminal.printError("Looked through many jobs of which few fit; more may be older.");
  if (next !== null)
    terminal.printError(`${count(jobs.length, "job")} shown. Older ones: --before ${next}`);
}

function momentOf(job: JobSummary, now: Date): string {
  if (job.finishedAt !== null) return `ended ${ago(job.finishedAt, now)}`;
  if (job.startedAt !== null) return `started ${ago(job.startedAt, now)}`;
  if (job.dueAt !== null) return `due ${when(job.dueAt, now)}`;
  return `made ${ago(job.createdAt, now)}`;
}

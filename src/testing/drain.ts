// Runs what waits, in this process, with a real worker, until nothing is left that could run now.

import type { Millrace } from "../client/millrace.ts";
import { MillraceError } from "../domain/errors.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Database } from "../store/postgres/database.ts";
import { statement } from "../store/postgres/statement.ts";
import { type AnyJobDefinition, isDefinition } from "../worker/job-definition.ts";
import type { Worker } from "../worker/worker.ts";
import { checkDrain, type DrainOptions } from "./drain-options.ts";
import { type Drained, describeRuns, endless, type Note, remembering, tooSlow } from "./drained.ts";
import { passTime, promoteDue, type TimeKeepers } from "./virtual-time.ts";

export interface DrainContext extends TimeKeepers {
  readonly millrace: Millrace;
  readonly clock: Clock;
}

// What waits for a paused tenant, or for a retry of its ordering key, does not. A running job counts, because a claim may be committed before the worker has heard of it.
const readRunnable = statement(
  "read_runnable",
  `with served as (
    select id, paused_at is null and is_active as open from millrace.queue where name = any($1::text[])
  ),
  coming as (
    select due_at from millrace.scheduled_job s join served q on q.id = s.queue_id and q.open
    where type = any($2::text[])
  )
  select (select count(*) from millrace.job j join served q on q.id = j.queue_id
      where type = any($2::text[])
        and (claim_id is not null or (q.open and (expires_at is null or expires_at > now())
          and not exists (select from millrace.tenant t where t.name = j.tenant and t.paused_at is not null)
          and not exists (select from millrace.scheduled_job s where s.queue_id = j.queue_id and s.lane = j.lane
            and s.lane > 1 and s.lane % 2 = 1 and s.claim_no > 0))))::int as runnable,
    (select count(*) from coming where due_at <= now())::int as due,
    (select extract(epoch from min(due_at) - now()) * 1000 from coming)::float8 as next_ms`,
);

const countWaiting = statement(
  "count_waiting",
  `select (select count(*) from millrace.job where claim_id is null)::int
    + (select count(*) from millrace.scheduled_job)::int as waiting`,
);

export async function drain(
  definitions: readonly AnyJobDefinition[],
  options: DrainOptions,
  context: DrainContext,
): Promise<Drained> {
  checkDrain(options);
  if (!Array.isArray(definitions) || !definitions.every(isDefinition)) {
    const message = "drain takes a list of definitions, each made by defineJob.";
    throw new MillraceError("OPTION_INVALID", message);
  }
  const { millrace, database } = context;
  const notes: Note[] = [];
  const thrown = new Map<string, unknown>();
  const off = millrace.events.on("job.settled", ({ id, attempt, outcome }) => {
    notes.push({ id, attempt, outcome });
  });
  const worker = await millrace.work(
    definitions.map((definition) => remembering(definition, thrown)),
    { concurrency: options.concurrency ?? 1, name: "drain", drainMs: 0 },
  );
  let advancedMs: number;
  try {
    advancedMs = await runAll(definitions, options, context, worker, notes);
  } finally {
    await worker.stop();
    off();
  }
  const [left] = await database.query<{ waiting: number }>(countWaiting);
  const runs = await describeRuns(notes, thrown, millrace);
  const failed = runs.find(({ error }) => error !== null);
  if (options.throwErrors === true && failed !== undefined) throw failed.error;
  return { runs, advancedMs, waiting: left?.waiting ?? 0 };
}

/** Returns how far virtual time was moved on. */
async function runAll(
  definitions: readonly AnyJobDefinition[],
  options: DrainOptions,
  context: DrainContext,
  worker: Worker,
  notes: readonly Note[],
): Promise<number> {
  const { database, clock, millrace } = context;
  const { maxRuns = 1_000, timeoutMs = 30_000 } = options;
  const deadline = clock.monotonic() + timeoutMs;
  const look = () => lookFor(definitions, database);
  const wake = (queueIds: Iterable<number>) =>
    worker.hear({ kind: "ready", queueIds: [...queueIds], late: false });
  let advancedMs = 0;
  for (;;) {
    const { runnable, due, nextMs } = await look();
    // A job that has just been settled is the worker's until its event is out, so it is asked last.
    const idle = runnable === 0 && due === 0 && worker.busy === 0;
    if (idle && (options.advance !== true || nextMs === null)) return advancedMs;
    if (notes.length >= maxRuns) throw endless(notes);
    if (clock.monotonic() > deadline) throw tooSlow(timeoutMs, runnable, worker, notes);
    if (idle && nextMs !== null) {
      const step = Math.max(1, Math.ceil(nextMs));
      advancedMs += step;
      wake(await passTime(step, context));
    } else if (due > 0) wake(await promoteDue(context));
    else await nextSettle(millrace, clock);
  }
}

async function lookFor(definitions: readonly AnyJobDefinition[], database: Database) {
  const queues = definitions.map(({ queue }) => queue);
  const types = definitions.map(({ type }) => type);
  const [found] = await database.query<{ runnable: number; due: number; next_ms: number | null }>(
    readRunnable,
    [queues, types],
  );
  return {
    runnable: found?.runnable ?? 0,
    due: found?.due ?? 0,
    nextMs: found?.next_ms ?? null,
  };
}

/** A look every now and then would do; the event only makes it quick. */
async function nextSettle(millrace: Millrace, clock: Clock): Promise<void> {
  const settled = new AbortController();
  const off = millrace.events.on("job.settled", () => settled.abort());
  await clock.sleep(20, settled.signal);
  off();
}

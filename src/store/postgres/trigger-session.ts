// What the trigger runner does in PostgreSQL: find what is due, fire it, and end what is over.

import type { DueTrigger, EndedBatch, TriggerSession } from "../triggers.ts";
import type { Connection } from "./connection.ts";
import type { Database } from "./database.ts";
import { asCoded, isRetryable } from "./failures.ts";
import { type InTransaction, inTerm } from "./leader.ts";
import { type RunStatement, statement } from "./statement.ts";
import { fireTrigger, fireTriggers } from "./trigger-fire.ts";
import { endItems, heldItems, type ItemEnd } from "./trigger-items.ts";
import type { FireContext } from "./trigger-jobs.ts";

const found = `t.id, t.name, t.tenant, t.type, t.failures, now() as "seenAt"`;

// Whoever fired last fires most often: a second is long for it, and a burst of others may take several.
const due = statement(
  "trigger_due",
  `(select ${found} from millrace.trigger t
    where t.enabled and t.next_fire_at <= now() and (t.retry_at is null or t.retry_at <= now())
    order by t.last_fired_at desc nulls last limit 20)
  union all
  (select ${found} from millrace.trigger t
    where t.enabled and t.next_fire_at <= now() and (t.retry_at is null or t.retry_at <= now())
    order by t.next_fire_at limit $1::int)
  union all
  (select ${found} from millrace.trigger t
    cross join lateral (select from millrace.queue q where q.id = t.queue_id and q.paused_at is null and q.is_active) q
    cross join lateral (
      select from millrace.job j where j.queue_id = t.queue_id and j.tenant = t.tenant and j.claim_id is null
        and (j.expires_at is null or j.expires_at > now()) limit 1
    ) j
    where t.enabled and t.on_arrival and t.next_fire_at > now() and (t.retry_at is null or t.retry_at <= now())
    limit $1::int)`,
);

const next = statement(
  "trigger_next",
  `select (extract(epoch from min(greatest(next_fire_at, retry_at)) - now()) * 1000)::float8 as wait_ms,
    json_agg(distinct queue_id) filter (where on_arrival) as arrivals,
    exists (select from millrace.trigger_batch) as open
  from millrace.trigger where enabled`,
);

// Told once when a trigger begins to fail, not with every try.
const noteFailure = statement(
  "trigger_note_failure",
  `with failed as (
    update millrace.trigger set failures = failures + 1, last_error = $2::json,
      retry_at = now() + $3::float8 * interval '1 ms'
    where id = $1::uuid returning id, name, tenant, failures, retry_at
  ),
  raised as (
    insert into millrace.notification (kind, tenant, data)
    select 'trigger.failed', tenant, json_build_object('trigger_id', id, 'name', name, 'error', $2::json)
    from failed
    where failures = 1 and exists (select from millrace.webhook w where w.is_active and 'trigger.failed' = any (w.kinds))
    returning id
  )
  select retry_at, (select pg_notify(@channel, 'notifications') from raised limit 1) from failed`,
);

// A job between two tables is in both or neither for no single snapshot.
const findEnded = statement(
  "trigger_find_ended",
  `select b.job_id from millrace.trigger_batch b
  where (select true from millrace.job j where j.id = b.job_id limit 1) is null
    and (select true from millrace.scheduled_job s where s.id = b.job_id limit 1) is null
  order by b.created_at limit $1::int`,
);

const lockBatch = statement(
  "trigger_lock_batch",
  `select job_id from millrace.trigger_batch where job_id = $1::uuid for update skip locked`,
);

const readEnd = statement(
  "trigger_read_end",
  `select state, error_class, error_fingerprint, error_message, error_stack from millrace.dead_job where id = $1::uuid
  union all
  select state, null, null, null, null from millrace.history where id = $1::uuid`,
);

const closeBatch = statement(
  "trigger_close_batch",
  `with claim as (delete from millrace.claim where id = $1::uuid)
  delete from millrace.trigger_batch where job_id = $1::uuid`,
);

interface NextRow {
  wait_ms: number | null;
  arrivals: number[] | null;
  open: boolean;
}

export type WithPartitions = <T>(body: () => Promise<T>) => Promise<T>;

export interface TriggerSessionOptions extends FireContext {
  readonly connection: Connection;
  readonly transaction?: InTransaction;
  readonly withPartitions: WithPartitions;
}

/** With a term, each of its writes is a leader's. */
export function openTriggerSession(
  database: Database,
  fence: { readonly term: number | undefined; readonly patienceMs: number },
  options: Pick<TriggerSessionOptions, "maxAttempts" | "withPartitions">,
): TriggerSession {
  const connection = database.reserve("triggers", { settings: { lock_timeout: "2s" } });
  const { channel } = database;
  if (fence.term === undefined) return triggerSession({ ...options, connection, channel });
  const transaction = inTerm(connection, fence.term, fence.patienceMs);
  return triggerSession({ ...options, connection, channel, transaction });
}

export function triggerSession(options: TriggerSessionOptions): TriggerSession {
  const { connection, withPartitions } = options;
  const transaction: InTransaction =
    options.transaction ?? ((body) => connection.transaction((run) => body(run)));
  return {
    async due(limit) {
      const rows = await connection.query<DueTrigger>(due, [limit]);
      return [...new Map(rows.map((row) => [row.id, row])).values()];
    },
    fire: (id, seenAt) =>
      transaction((run) => fireTrigger(run, id, seenAt, options)).catch((error: unknown) =>
        nothingIfBusy(error, null),
      ),
    fireTogether: (ids, seenAt) =>
      transaction((run) => fireTriggers(run, ids, seenAt, options)).catch((error: unknown) =>
        nothingIfBusy(error, ids.map(nobody)),
      ),
    noteFailure: (id, error, delayMs) =>
      transaction(async (run) => {
        const [row] = await run(noteFailure, [id, JSON.stringify(error), delayMs]);
        return (row?.retry_at as Date | undefined) ?? null;
      }),
    async endBatches(limit) {
      const found = await connection.query<{ job_id: string }>(findEnded, [limit]);
      const ended: EndedBatch[] = [];
      const errors: unknown[] = [];
      for (const { job_id: jobId } of found) {
        try {
          const items = await withPartitions(() => transaction((run) => endBatch(run, jobId)));
          if (items !== null) ended.push({ jobId, items });
        } catch (error) {
          errors.push(error);
        }
      }
      // One that cannot be ended must not keep the others.
      if (errors.length > 0 && ended.length === 0) throw errors[0];
      return ended;
    },
    async waitForNext() {
      const [row] = await connection.query<NextRow>(next);
      return {
        waitMs: row?.wait_ms ?? null,
        arrivals: row?.arrivals ?? [],
        open: row?.open ?? false,
      };
    },
    close: () => connection.close(),
  };
}

const nobody = () => null;

function nothingIfBusy<T>(error: unknown, nothing: T): T {
  if (isRetryable(error)) return nothing;
  throw asCoded(error);
}

/** How many items ended with their job; null: somebody else ends them. */
async function endBatch(run: RunStatement, jobId: string): Promise<number | null> {
  if ((await run(lockBatch, [jobId])).length === 0) return null;
  const [row] = await run(readEnd, [jobId]);
  const { end, note } = endWith(jobId, row);
  const items = await heldItems(run, jobId);
  if (items.length > 0) await endItems(run, jobId, items, end, note);
  await run(closeBatch, [jobId]);
  return items.length;
}

/** The rule of docs/design/triggers.md: what a job's end means for the items it still holds. */
function endWith(
  jobId: string,
  row: Record<string, unknown> | undefined,
): { readonly end: ItemEnd; readonly note?: string } {
  const state = row?.state ?? "gone";
  switch (state) {
    case "completed":
      return { end: { kind: "completed", json: JSON.stringify({ job_id: jobId }) } };
    case "cancelled":
    case "deleted":
      return { end: { kind: "cancelled" }, note: `Job ${jobId}, which held it, was ${state}.` };
    default:
      return { end: { kind: "dead", error: errorOf(jobId, String(state), row) } };
  }
}

function errorOf(jobId: string, state: string, row: Record<string, unknown> | undefined) {
  if (typeof row?.error_message !== "string") {
    const message = `Job ${jobId}, which held it, is ${state}.`;
    return { class: "non_retryable", fingerprint: `trigger_${state}`, message } as const;
  }
  return {
    class: row.error_class as "non_retryable",
    fingerprint: String(row.error_fingerprint),
    message: row.error_message,
    ...(typeof row.error_stack === "string" ? { stack: row.error_stack } : {}),
  };
}

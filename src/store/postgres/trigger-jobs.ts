// The jobs that triggers make.

import { keptVersion } from "../../domain/payload-version.ts";
import { payloadOf, type Trigger } from "../../domain/trigger.ts";
import type { NewJob } from "../store.ts";
import { enqueueJobs } from "./enqueue.ts";
import { noticeTexts } from "./notices.ts";
import type { RunStatement } from "./statement.ts";
import type { TriggerRow } from "./trigger-rows.ts";

export interface DueRow extends TriggerRow {
  now: Date;
  queue_attempts: number | null;
  is_active: boolean;
  capacity: number | null;
  tenant_capacity: number | null;
  own_capacity: number | null;
  own_warn_depth: number | null;
}

export interface FireContext {
  readonly channel: string;
  /** Attempts of jobs for which neither trigger nor queue says a number. */
  readonly maxAttempts: number;
}

/** A flush has 1,024 places in the order. */
export const mostPerStatement = 1_000;

/** Is there anything that its tenant's jobs are counted for? */
const countsForTenant = (row: DueRow): boolean =>
  row.tenant_capacity !== null || row.own_capacity !== null || row.own_warn_depth !== null;

export function newJob(
  row: DueRow,
  trigger: Trigger,
  { id, slot, items }: { id: string; slot?: Date; items?: readonly string[] },
  context: FireContext,
): NewJob {
  const governed = trigger.category !== null;
  const key = `trigger:${trigger.id}:${slot?.toISOString() ?? id}`;
  const payload = payloadOf(trigger, items === undefined ? { id, key } : { id, key, items });
  const version = keptVersion(trigger.payloadVersion ?? undefined, payload);
  return {
    id,
    type: trigger.jobType,
    queueId: trigger.jobQueueId,
    tenant: trigger.tenant,
    weight: trigger.weight,
    maxAttempts: trigger.maxAttempts ?? row.queue_attempts ?? context.maxAttempts,
    payload: JSON.stringify(payload),
    expiresInMs: trigger.expiresInMs ?? undefined,
    maxRuntimeMs: trigger.maxRuntimeMs ?? undefined,
    correlationId: governed ? id : undefined,
    key: governed ? key : undefined,
    meta: {
      source: "TRIGGER",
      ...(countsForTenant(row) ? { counted: true as const } : {}),
      trigger: trigger.id,
      ...(slot === undefined ? {} : { slot: slot.toISOString() }),
      ...(trigger.priority === null ? {} : { priority: trigger.priority }),
      ...(trigger.category === null ? {} : { category: trigger.category }),
      ...(version === undefined ? {} : { payloadVersion: version }),
    },
  };
}

export async function enqueueMade(
  run: RunStatement,
  jobs: readonly NewJob[],
  { channel }: FireContext,
): Promise<void> {
  for (let from = 0; from < jobs.length; from += mostPerStatement) {
    const some = jobs.slice(from, from + mostPerStatement);
    const notice = noticeTexts.late(new Set(some.map(({ queueId }) => queueId)));
    const request = { flushNo: null, producer: null, channel, notice, jobs: some };
    for (const answer of (await enqueueJobs(run, request)) ?? []) {
      if (answer instanceof Error) throw answer;
    }
  }
}

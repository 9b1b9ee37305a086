// What operators do, over HTTP: queues, dead letters, workers.

import { MillraceError } from "../../domain/errors.ts";
import type { Queue, QueueSettings } from "../../store/queue.ts";
import type { WorkerPresence } from "../../store/store.ts";
import { checkQueueSettings } from "../queue-settings.ts";
import type { HttpCaller } from "./caller.ts";
import { settingsToWire, wireToSettings } from "./queue-wire.ts";

export interface RemoteDeadLetterFilter {
  readonly queue?: string;
  readonly type?: string;
  readonly fingerprint?: string;
}

/** Read the job itself for its payload. */
export interface RemoteDeadLetter {
  readonly id: string;
  readonly type: string;
  readonly queue: string;
  readonly tenant: string;
  readonly category: string | null;
  readonly errorClass: string;
  readonly errorFingerprint: string;
  readonly errorMessage: string;
  readonly attempt: number;
  readonly createdAt: Date;
  readonly diedAt: Date;
}

/** Without what only workers need to know. */
export type RemoteQueue = Omit<Queue, "controlled" | "firstTenant" | "laned">;

type Wire = Record<string, unknown>;
const page = 200;

const toQueue = (wire: Wire): RemoteQueue =>
  ({
    ...wireToSettings(wire),
    id: wire.id,
    tenant: wire.tenant_id ?? "",
    name: wire.name,
    paused: wire.paused,
  }) as RemoteQueue;

export async function listQueues(caller: HttpCaller): Promise<RemoteQueue[]> {
  const queues: RemoteQueue[] = [];
  for (let cursor: string | undefined; ; ) {
    const query = { tenant_id: caller.tenant, limit: page, cursor };
    const answer = await caller.call<{ queues: Wire[]; next_cursor: string | null }>(
      ...(["GET", "/api/queues", { query }] as const),
    );
    queues.push(...answer.queues.map(toQueue));
    if (answer.next_cursor === null) return queues;
    cursor = answer.next_cursor;
  }
}

/** The tenant's own queue of this name comes before a shared one. */
async function findQueue(caller: HttpCaller, name: string): Promise<RemoteQueue | undefined> {
  const own = (await listQueues(caller)).filter((queue) => queue.name === name);
  return own.find(({ tenant }) => tenant !== "") ?? own[0];
}

export async function configureQueue(
  caller: HttpCaller,
  name: string,
  settings: QueueSettings,
): Promise<RemoteQueue> {
  checkQueueSettings(settings);
  const found = await findQueue(caller, name);
  const changes = settingsToWire(settings);
  if (found !== undefined)
    return toQueue(await caller.call<Wire>("PUT", `/api/queues/${found.id}`, { body: changes }));
  const tenant = caller.tenant === undefined ? {} : { tenant_id: caller.tenant };
  const body = { name, ...tenant, ...changes };
  return toQueue(await caller.call<Wire>("POST", "/api/queues", { body, isRepeatable: false }));
}

export async function pauseQueue(
  caller: HttpCaller,
  name: string,
  paused: boolean,
): Promise<RemoteQueue> {
  const found = await findQueue(caller, name);
  if (found === undefined)
    throw new MillraceError("QUEUE_NOT_FOUND", `There is no queue "${name}".`);
  const path = `/api/queues/${found.id}/${paused ? "pause" : "resume"}`;
  return toQueue(await caller.call<Wire>("POST", path));
}

export async function listDeadLetters(
  caller: HttpCaller,
  filter: RemoteDeadLetterFilter,
  limit: number,
): Promise<RemoteDeadLetter[]> {
  const queue = filter.queue === undefined ? undefined : await findQueue(caller, filter.queue);
  if (filter.queue !== undefined && queue === undefined) return [];
  const query = {
    ...{ status: "pending_review", tenant_id: caller.tenant, limit: Math.min(limit, page) },
    ...{ queue_id: queue?.id, job_type: filter.type, error_fingerprint: filter.fingerprint },
  };
  const answer = await caller.call<{ dlq_items: Wire[] }>("GET", "/api/jobs/admin/dlq", { query });
  return answer.dlq_items.map((wire) => ({
    id: String(wire.dlq_id),
    type: String(wire.job_type),
    queue: String(wire.queue),
    tenant: String(wire.tenant_id),
    category: wire.category === null ? null : String(wire.category),
    errorClass: String(wire.error_class),
    errorFingerprint: String(wire.error_fingerprint),
    errorMessage: String(wire.error_message),
    attempt: Number(wire.attempt_count),
    createdAt: new Date(String(wire.original_created_at)),
    diedAt: new Date(String(wire.created_at)),
  }));
}

export async function listWorkers(caller: HttpCaller): Promise<WorkerPresence[]> {
  const { workers } = await caller.call<{ workers: Wire[] }>("GET", "/api/workers");
  return workers.map((wire) => ({
    leaseId: String(wire.lease_id),
    name: String(wire.name),
    state: wire.state as WorkerPresence["state"],
    startedAt: new Date(String(wire.started_at)),
    renewedAt: new Date(String(wire.renewed_at)),
    info: wire.info,
    running: wire.running as WorkerPresence["running"],
  }));
}

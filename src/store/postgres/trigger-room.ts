// Whether a trigger's queue takes its jobs, and how many: the capacities of the queue and of the tenant.

import { MillraceError } from "../../domain/errors.ts";
import { type RunStatement, statement } from "./statement.ts";
import type { DueRow } from "./trigger-jobs.ts";

const depthOf = statement(
  "trigger_queue_depth",
  `select coalesce(sum(enqueued - completed - dead - removed), 0)::float8 as depth
  from millrace.queue_tally where queue_id = $1::int`,
);

const tenantDepthsOf = statement(
  "trigger_tenant_depths",
  `select coalesce(sum(jobs) filter (where queue_id = $1::int), 0)::float8 as here,
    coalesce(sum(jobs), 0)::float8 as everywhere
  from millrace.tenant_count where tenant = $2::text`,
);

/** By bound, what is about to be enqueued in the same transaction. */
export type Planned = ReadonlyMap<string, number>;

const nothingPlanned: Planned = new Map();

const namesOf = ({ job_queue_id: queue, tenant }: DueRow) => ({
  queue: `queue:${queue}`,
  here: `queue:${queue}:${tenant}`,
  everywhere: `tenant:${tenant}`,
});

export const boundsOf = (row: DueRow): string[] => Object.values(namesOf(row));

/** How many of the wanted jobs the queue takes beside those planned; refuses when it is not one. */
export async function roomFor(
  run: RunStatement,
  row: DueRow,
  wanted: number,
  planned: Planned = nothingPlanned,
): Promise<number> {
  if (wanted === 0) return 0;
  if (!row.is_active)
    throw new MillraceError("QUEUE_INACTIVE", `Queue "${row.job_queue}" does not accept jobs.`);
  const ofQueue = await roomInQueue(run, row, wanted, planned);
  return Math.min(ofQueue, await roomForTenant(run, row, wanted, planned));
}

async function roomInQueue(
  run: RunStatement,
  row: DueRow,
  wanted: number,
  planned: Planned,
): Promise<number> {
  const { job_queue: queue, capacity } = row;
  if (capacity === null) return wanted;
  const [counted] = await run(depthOf, [row.job_queue_id]);
  const depth = Number(counted?.depth ?? 0) + (planned.get(namesOf(row).queue) ?? 0);
  if (depth < capacity) return Math.min(wanted, capacity - depth);
  throw new MillraceError(
    "QUEUE_FULL",
    `Queue "${queue}" holds ${depth} of ${capacity} jobs; ${wanted} more do not fit.`,
    { details: { queue, depth, capacity, wanted } },
  );
}

async function roomForTenant(
  run: RunStatement,
  row: DueRow,
  wanted: number,
  planned: Planned,
): Promise<number> {
  const { tenant, job_queue: queue, tenant_capacity, own_capacity } = row;
  if (tenant_capacity === null && own_capacity === null) return wanted;
  const [counted] = await run(tenantDepthsOf, [row.job_queue_id, tenant]);
  const names = namesOf(row);
  const here = Number(counted?.here ?? 0) + (planned.get(names.here) ?? 0);
  const everywhere = Number(counted?.everywhere ?? 0) + (planned.get(names.everywhere) ?? 0);
  const bounds = [
    { limit: "tenant_in_queue", depth: here, capacity: tenant_capacity, details: { queue } },
    { limit: "tenant", depth: everywhere, capacity: own_capacity, details: {} },
  ];
  let room = wanted;
  for (const { limit, depth, capacity, details } of bounds) {
    if (capacity === null) continue;
    if (depth >= capacity)
      throw new MillraceError(
        "TENANT_FULL",
        `Tenant "${tenant}" holds ${depth} of ${capacity} jobs; ${wanted} more do not fit.`,
        { details: { limit, tenant, ...details, depth, capacity, wanted } },
      );
    room = Math.min(room, capacity - depth);
  }
  return room;
}

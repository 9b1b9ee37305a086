// Tenants with backlogs, claimed by several sessions in turn; what is looked at is the order.

import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import { laneQueue } from "../conformance/lanes.ts";
import { Stage } from "../conformance/stage.ts";
import { openTestStore } from "./store.ts";

interface Backlog {
  readonly tenant: string;
  readonly weight: number;
  readonly jobs: number;
}

/** Tenants in the order in which their jobs were claimed. */
async function claimOrder(
  backlogs: readonly Backlog[],
  options: { readonly sessions: number; readonly most: number; readonly stopAt: number },
): Promise<string[]> {
  const stage = new Stage(await openTestStore());
  try {
    const { id } = await laneQueue(stage);
    for (const backlog of backlogs) await fill(stage, id, backlog);
    const sessions = Array.from({ length: options.sessions }, (_, i) =>
      stage.store.worker(`claimer ${i}`),
    );
    const leaseId = await stage.openLease();
    const order: string[] = [];
    for (let turn = 0; order.length < options.stopAt; turn++) {
      const session = sessions[turn % sessions.length];
      // Sizes differ, so that visits end in the middle.
      const limit = 1 + ((turn * 7) % options.most);
      const request = { claimId: randomUUID(), leaseId, queueId: id, limit };
      const claimed = await session?.claimLanes({ ...request, types: null, suspect: true });
      if (claimed === undefined || claimed.jobs.length === 0) break;
      order.push(...claimed.jobs.map(({ tenant }) => tenant));
      await stage.complete(claimed.jobs);
    }
    for (const session of sessions) await session.close();
    return order;
  } finally {
    await stage.close();
  }
}

async function fill(stage: Stage, queueId: number, { tenant, weight, jobs }: Backlog) {
  await stage.store.flow.configureTenant(tenant, { weight });
  const slot = await stage.store.flow.slotOf(queueId, tenant);
  await stage.sql(
    `insert into millrace.job (id, seq, created_at, ready_at, queue_id, tenant_slot, weight, max_attempts, type, tenant, payload)
    select gen_random_uuid(), nextval('millrace.flush_seq') * 1024, now(), now(), $1, $2, 5, 5, 'work', $3, '{}'
    from generate_series(1, $4::int)`,
    [queueId, slot, tenant, jobs],
  );
}

/** However deep the other's backlog: as long as the small tenant waits, its jobs come at every second place. */
export async function smallBesideDeep(deep: number, small: number): Promise<void> {
  const backlogs = [
    { tenant: "deep", weight: 1, jobs: deep },
    { tenant: "small", weight: 1, jobs: small },
  ];
  const order = await claimOrder(backlogs, { sessions: 3, most: 25, stopAt: 3 * small });
  const places = order.flatMap((tenant, place) => (tenant === "small" ? place : []));
  expect(places).toHaveLength(small);
  for (const [n, place] of places.entries()) {
    const before = n === 0 ? -1 : (places[n - 1] ?? 0);
    // N further claims, and N are the two tenants.
    expect(place - before).toBeLessThanOrEqual(2);
  }
}

/** Shares by weight while nobody runs out. */
export async function sharesByWeight(jobs: number): Promise<number> {
  const backlogs = [
    { tenant: "three", weight: 3, jobs },
    { tenant: "one", weight: 1, jobs },
  ];
  const order = await claimOrder(backlogs, { sessions: 3, most: 25, stopAt: jobs });
  return order.filter((tenant) => tenant === "three").length / order.length;
}

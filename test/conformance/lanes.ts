import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import type { LaneClaimed } from "../../src/store/flow.ts";
import type { QueueSettings } from "../../src/store/store.ts";
import {
  type Claim,
  dead,
  ids,
  released,
  retried,
  type Stage,
  snoozed,
  type Topic,
} from "./stage.ts";

let queues = 0;

export interface LaneQueue {
  readonly id: number;
  readonly name: string;
}

/** A queue of the test's own with these settings. */
export async function laneQueue(stage: Stage, settings: QueueSettings = {}): Promise<LaneQueue> {
  const name = `lanes-${++queues}`;
  const { id } = await stage.store.configureQueue("", name, settings);
  return { id, name };
}

interface Taking {
  readonly limit?: number;
  readonly types?: readonly string[];
  readonly leaseId?: string;
  readonly suspect?: boolean;
  readonly claimId?: string;
}

export async function takeLanes(
  stage: Stage,
  queueId: number,
  { limit = 100, types, leaseId, suspect = true, claimId = randomUUID() }: Taking = {},
): Promise<LaneClaimed & { readonly jobs: readonly Claim[] }> {
  const lease = leaseId ?? (await stage.openLease());
  const request = { claimId, leaseId: lease, queueId, limit, types: types ?? null, suspect };
  return stage.worker.claimLanes(request);
}

const ordered = 3;
const limited = 4;

/** What tests of keys do again and again. */
export function laneSteps(stage: () => Stage) {
  const take = (queueId: number, options?: Taking) => takeLanes(stage(), queueId, options);
  const put = (queueId: number, lane: number, count = 1) =>
    stage().put(...stage().jobs(queueId, count, { tenantSlot: 0, lane }));
  async function keyed(settings: QueueSettings = {}): Promise<number> {
    const { id } = await laneQueue(stage(), settings);
    await stage().store.flow.useLanes(id);
    return id;
  }
  const idsOf = async (queueId: number, options?: Taking) =>
    ids((await take(queueId, options)).jobs);
  return { take, put, keyed, idsOf };
}

export const lanes: Topic = (stage) => {
  const { take, put, keyed, idsOf } = laneSteps(stage);

  it("a controlled queue without keys is claimed in order, as any claim", async () => {
    const { id } = await laneQueue(stage(), { concurrency: 50 });
    const made = await put(id, 0, 5);
    const { jobs, waiting } = await take(id, { limit: 3 });
    expect(ids(jobs)).toEqual(made.slice(0, 3));
    expect(waiting).toBe(false);
    expect(jobs[0]).toMatchObject({ attempt: 1, type: "work", payload: { n: 1 }, queueId: id });
    expect(await stage().complete(jobs)).toBe(3);
    expect(await idsOf(id)).toEqual(made.slice(3));
  });

  it("the same claim id returns the same jobs", async () => {
    const { id } = await laneQueue(stage(), { concurrency: 5 });
    await put(id, 0, 3);
    const claimId = randomUUID();
    const { jobs } = await take(id, { claimId });
    expect(ids((await stage().worker.replay(claimId)).jobs).sort()).toEqual(ids(jobs).sort());
  });

  it("no more run at once than the queue allows, and a slot is free when its job has ended", async () => {
    const { id } = await laneQueue(stage(), { concurrency: 2 });
    await put(id, 0, 5);
    const first = await take(id);
    expect(first.jobs).toHaveLength(2);
    const blocked = await take(id);
    expect(blocked).toMatchObject({ jobs: [], waiting: true, reason: "concurrency" });
    await stage().complete(first.jobs.slice(0, 1));
    expect((await take(id)).jobs).toHaveLength(1);
  });

  it("a slot is held until the reclaimer has taken the job of a dead process", async () => {
    const { id } = await laneQueue(stage(), { concurrency: 1 });
    await put(id, 0, 2);
    const leaseId = await stage().openLease();
    const [job] = (await take(id, { leaseId })).jobs;
    if (job === undefined) throw new Error("nothing was claimed");
    await stage().endLease(leaseId);
    expect((await take(id)).reason).toBe("concurrency");
    await stage().settleLapsed(job, leaseId, released);
    expect(await idsOf(id)).toEqual([job.id]);
  });

  it("claims that meet wait for each other, and do not exceed the limit", async () => {
    const { id } = await laneQueue(stage(), { concurrency: 3 });
    await put(id, 0, 20);
    await stage().put(...stage().jobs(id, 20, { tenantSlot: 0, type: "other" }));
    // From the second claim on the lock is there to be waited for.
    await stage().complete((await take(id, { limit: 1 })).jobs);
    const session = await stage().session();
    await session.query("begin");
    const text =
      "select id from millrace.claim_lanes($1, $2, $3, 10, '{work}', true) where id is not null";
    const leaseId = await stage().openLease();
    const first = await session.query(text, [randomUUID(), leaseId, id]);
    expect(first.rows).toHaveLength(3);
    const rivals = Array.from({ length: 3 }, (_, i) => stage().store.worker(`rival ${i}`));
    const claims = rivals.map((rival) =>
      rival.claimLanes({
        ...{ claimId: randomUUID(), leaseId, queueId: id, limit: 10 },
        // Other rows than those of the open claim: only the lock keeps them apart.
        ...{ types: ["other"], suspect: true },
      }),
    );
    await session.query("select pg_sleep(0.1)");
    await session.query("commit");
    expect((await Promise.all(claims)).flatMap(({ jobs }) => jobs)).toEqual([]);
    await Promise.all(rivals.map((rival) => rival.close()));
    await session.close();
  });

  it("a limit key has slots of its own", async () => {
    const id = await keyed({ keyConcurrency: 2 });
    await put(id, limited, 4);
    const others = await put(id, limited + 2, 1);
    const { jobs } = await take(id);
    expect(jobs).toHaveLength(3);
    expect(ids(jobs)).toContain(others[0]);
    expect(await take(id)).toMatchObject({ jobs: [], waiting: true });
    await stage().complete(jobs.slice(0, 2));
    expect((await take(id)).jobs.length).toBeGreaterThan(0);
  });

  it("an ordering key lets one run at a time, in order", async () => {
    const id = await keyed();
    const made = await put(id, ordered, 3);
    for (const expected of made) {
      const { jobs } = await take(id);
      expect(ids(jobs)).toEqual([expected]);
      expect((await take(id)).jobs).toEqual([]);
      await stage().complete(jobs);
    }
  });

  it.each([
    ["retried", retried(600_000)],
    ["snoozed", snoozed(600_000)],
  ])("a job that was %s blocks its key, and comes back in front", async (_, ending) => {
    const id = await keyed();
    const made = await put(id, ordered, 2);
    const [job] = (await take(id)).jobs;
    if (job === undefined) throw new Error("nothing was claimed");
    await stage().settle(job, ending);
    expect((await take(id)).jobs).toEqual([]);
    await stage().sql("update millrace.scheduled_job set due_at = now() where id = $1", [job.id]);
    await stage().promoteAll();
    expect(await idsOf(id)).toEqual([made[0]]);
  });

  it("a suspect keeps its key, and is held once at a time", async () => {
    const id = await keyed();
    await put(id, ordered, 1);
    await put(id, ordered + 2, 1);
    for (const job of (await take(id)).jobs) await stage().settle(job, retried(0), true);
    await stage().promoteAll();
    expect((await take(id, { suspect: false })).jobs).toEqual([]);
    expect((await take(id)).jobs).toHaveLength(1);
  });

  it("a suspect comes back to its place in its key", async () => {
    const id = await keyed();
    const [first] = await put(id, ordered, 2);
    for (const job of (await take(id)).jobs) await stage().settle(job, retried(0), true);
    await stage().promoteAll();
    expect(await idsOf(id)).toEqual([first]);
    expect((await take(id)).jobs).toEqual([]);
  });

  it.each([true, false])("does a dead letter block its key: %s", async (deadLetterBlocksKey) => {
    const id = await keyed({ deadLetterBlocksKey });
    const made = await put(id, ordered, 2);
    const [job] = (await take(id)).jobs;
    if (job === undefined) throw new Error("nothing was claimed");
    await stage().settle(job, dead);
    expect(await idsOf(id)).toEqual(deadLetterBlocksKey ? [] : [made[1]]);
    if (!deadLetterBlocksKey) return;
    await stage().store.discard(job.id, { reason: "test", actor: "test" });
    expect(await idsOf(id)).toEqual([made[1]]);
  });

  it("the order of a key goes before priorities", async () => {
    const id = await keyed();
    const options = { tenantSlot: 0, lane: ordered };
    const [low] = await stage().put(stage().job(id, { ...options, weight: 10 }));
    const [high] = await stage().put(stage().job(id, { ...options, weight: 0 }));
    const { jobs } = await take(id);
    expect(ids(jobs)).toEqual([low]);
    await stage().complete(jobs);
    expect(await idsOf(id)).toEqual([high]);
  });

  it("the head of a key that a worker does not know is not passed over", async () => {
    const id = await keyed();
    const options = { tenantSlot: 0, lane: ordered };
    await stage().put(stage().job(id, { ...options, type: "other" }));
    await stage().put(stage().job(id, options));
    expect((await take(id, { types: ["work"] })).jobs).toEqual([]);
    expect((await take(id, { types: ["other"] })).jobs).toHaveLength(1);
  });

  it("the head of a key that somebody is cancelling is not passed over", async () => {
    const id = await keyed();
    const [head, second] = await put(id, ordered, 2);
    const session = await stage().session();
    await session.query("begin");
    await session.query("select from millrace.job where id = $1 for update", [head]);
    expect((await take(id)).jobs).toEqual([]);
    await session.query("delete from millrace.job where id = $1", [head]);
    await session.query("commit");
    await session.close();
    expect(await idsOf(id)).toEqual([second]);
  });
};

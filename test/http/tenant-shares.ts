// A tenant's share of a queue that all tenants use.

import { describe, expect, test } from "vitest";
import { readShare } from "../../src/store/postgres/item-share.ts";
import { useHttp } from "../support/http.ts";
import { newQueue } from "../support/instance.ts";
import { randomOf } from "../support/random.ts";

const tenants = ["one", "two", "default"] as const;
type Tenant = (typeof tenants)[number];

/** Everything of a tenant in a queue, row by row. */
const bruteForce = `
  with ended as (
    select extract(epoch from finished_at - started_at) * 1000 as ms from millrace.history
      where queue_id = $1 and tenant = $2 and state = 'completed'
    union all select extract(epoch from finished_at - started_at) * 1000 from millrace.dead_job
      where queue_id = $1 and tenant = $2 and state = 'dead'
  )
  select (select count(*)::int from millrace.job where queue_id = $1 and tenant = $2 and claim_id is null)
      + (select count(*)::int from millrace.scheduled_job where queue_id = $1 and tenant = $2) as "NEW",
    (select count(*)::int from millrace.job where queue_id = $1 and tenant = $2 and claim_id is not null) as "IN_PROGRESS",
    (select count(*)::int from millrace.history where queue_id = $1 and tenant = $2 and state = 'completed') as "DONE",
    (select count(*)::int from millrace.dead_job where queue_id = $1 and tenant = $2 and state = 'dead') as "FAILED",
    (select count(*)::int from millrace.dead_job where queue_id = $1 and tenant = $2 and state = 'dead'
      and (exception_type = 'business' or error_message ~ 'business')) as business,
    (select avg(ms)::float8 from ended) as average,
    (select percentile_cont(0.5) within group (order by ms) from ended)::float8 as p50`;

export function tenantSharesSuite(): void {
  const http = useHttp();
  const keys = new Map<string, string>();
  const keyOf = async (role: "robot" | "staff", tenant: string) => {
    const name = `${role} ${tenant}`;
    const known = keys.get(name) ?? (await http.key(role, tenant));
    keys.set(name, known);
    return known;
  };
  const shared = async () =>
    (await http.call("POST", "/api/queues", { body: { name: newQueue() } })).body.id as number;
  const add = async (queue_id: number, tenant: Tenant, more: object = {}) =>
    http.call("POST", "/api/queue-items", {
      key: await keyOf("robot", tenant),
      body: { queue_id, payload: 1, ...more },
    });
  const stats = async (id: number, tenant: string | null) => {
    const key = tenant === null ? {} : { key: await keyOf("staff", tenant) };
    const answer = await http.call("GET", `/api/queues/${id}/stats`, key);
    expect(answer.status).toBe(200);
    return answer.body;
  };

  async function step(id: number, tenant: Tenant, random: () => number) {
    await add(id, tenant, random() < 0.2 ? { delay_ms: 3_600_000 } : {});
    if (random() < 0.2) return;
    const key = await keyOf("robot", tenant);
    const next = await http.call("GET", `/api/queue-items/next?queue_id=${id}`, { key });
    if (next.status === 204 || random() < 0.2) return;
    const ends = [
      ...[{ status: "DONE" }, { status: "DONE" }, { status: "FAILED", error_message: "down" }],
      { status: "FAILED", exception_type: "business" },
      { status: "FAILED", error_message: "a business rule" },
    ];
    const end = ends[Math.floor(random() * ends.length)];
    const path = `/api/queue-items/${next.body.id}`;
    await http.call("PUT", path, { key, body: { ...end, token: next.body.token } });
    if (random() < 0.1) await http.call("DELETE", path);
  }

  describe("a tenant's share of a shared queue", () => {
    test("equals a brute-force count of its own rows, and all shares are the whole", async () => {
      const [id, other] = [await shared(), await shared()];
      const random = randomOf(11, "shares");
      for (let i = 0; i < 120; i++) {
        const tenant = tenants[Math.floor(random() * tenants.length)] as Tenant;
        await step(random() < 0.8 ? id : other, tenant, random);
      }
      const whole = (await stats(id, null)).counts;
      const sum = { NEW: 0, IN_PROGRESS: 0, DONE: 0, FAILED: 0 };
      for (const tenant of tenants) {
        const [row] = await http.query<Record<string, number>>(bruteForce, [id, tenant]);
        const { business = 0, average = 0, p50 = 0, ...counts } = row ?? {};
        const share = await stats(id, tenant);
        expect(share.counts, tenant).toEqual(counts);
        expect(Object.values(counts).every((count) => count > 0)).toBe(true);
        expect([share.biz_exceptions, share.is_complete]).toEqual([business, true]);
        expect(share.app_exceptions).toBe(Number(counts.FAILED) - business);
        expect(share.processing_ms.average).toBeCloseTo(average, 3);
        expect(share.processing_ms.p50).toBeCloseTo(p50, 3);
        expect(share.oldest_new_seconds).toBeGreaterThan(0);
        expect(share.oldest_in_progress_seconds).toBeGreaterThan(0);
        for (const name of Object.keys(sum) as (keyof typeof sum)[]) sum[name] += counts[name] ?? 0;
      }
      expect(sum).toEqual(whole);
    });

    test("security 4: tells nothing of what others have there", async () => {
      const id = await shared();
      const nobody = await stats(id, "two");
      expect(nobody).toEqual({
        ...{ queue_id: id, is_complete: true, app_exceptions: 0, biz_exceptions: 0 },
        counts: { NEW: 0, IN_PROGRESS: 0, DONE: 0, FAILED: 0 },
        ...{ processing_ms: null, oldest_new_seconds: null, oldest_in_progress_seconds: null },
      });
      const random = randomOf(12, "others");
      for (let i = 0; i < 15; i++) await step(id, "one", random);
      for (const tenant of ["two", "default", "three"])
        expect(await stats(id, tenant)).toEqual(nobody);
    });

    test("is counted up to a bound in each table, and says when there was more", async () => {
      const id = await shared();
      for (let i = 0; i < 4; i++) await add(id, "one");
      const database = {
        query: (source: { text: string }, values: unknown[] = []) =>
          http.query(source.text, values as unknown[]),
      };
      const read = (tenant: string, bound: number) =>
        readShare({ own: database, all: database } as never, id, tenant, bound);
      expect(await read("one", 1_000)).toMatchObject({ new: 4, isComplete: true });
      expect((await read("one", 3)).isComplete).toBe(false);
      expect(await read("two", 1_000)).toMatchObject({ new: 0, isComplete: true });
    });
  });
}

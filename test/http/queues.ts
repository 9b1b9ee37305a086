import { describe, expect, test } from "vitest";
import { useHttp } from "../support/http.ts";
import { dieOnce } from "../support/http-world.ts";
import { newQueue } from "../support/instance.ts";
import { randomOf } from "../support/random.ts";

export function queuesSuite(): void {
  const http = useHttp();
  const create = async (more: object = {}) => {
    const body = { name: newQueue(), tenant_id: "acme", ...more };
    return (await http.call("POST", "/api/queues", { body })).body;
  };
  const statsOf = async (id: number) => (await http.call("GET", `/api/queues/${id}/stats`)).body;

  describe("a queue", () => {
    test("is made, read, changed and listed, with one attempt per item unless it says more", async () => {
      const made = await create({ description: "invoices", external_id: "inv-7" });
      expect(made).toMatchObject({
        ...{ tenant_id: "acme", max_retries: 0, is_active: true, paused: false },
        ...{ description: "invoices", external_id: "inv-7", enforce_unique_reference: false },
      });
      const path = `/api/queues/${made.id}`;
      const body = { max_retries: 2, capacity: 10, retention_days: 7, description: null };
      const changed = await http.call("PUT", path, { body });
      expect(changed.body).toMatchObject({ ...body, external_id: "inv-7" });
      expect((await http.call("GET", path)).body).toEqual(changed.body);
      const { queues } = (await http.call("GET", "/api/queues?tenant_id=acme&limit=200")).body;
      expect(queues).toContainEqual(changed.body);
      expect((await http.call("PUT", path, { body: { max_retries: -1 } })).status).toBe(400);
      const asTypesSay = { body: { max_retries: null } };
      expect((await http.call("PUT", path, asTypesSay)).body.max_retries).toBeNull();
      expect((await http.call("PUT", path, { body: { paused: true } })).status).toBe(400);
    });

    test("has a name that is unique within its tenant, whoever asks at the same time", async () => {
      const name = newQueue();
      const asked = Array.from({ length: 8 }, () =>
        http.call("POST", "/api/queues", { body: { name, tenant_id: "acme" } }),
      );
      const statuses = (await Promise.all(asked)).map(({ status }) => status).sort();
      expect(statuses).toEqual([201, 409, 409, 409, 409, 409, 409, 409]);
      expect((await http.call("POST", "/api/queues", { body: { name } })).status).toBe(201);
    });

    test("is listed page by page", async () => {
      for (let i = 0; i < 5; i++) await create();
      const ids: number[] = [];
      for (let cursor = ""; ; ) {
        const { body } = await http.call("GET", `/api/queues?limit=2${cursor}`);
        ids.push(...body.queues.map(({ id }: { id: number }) => id));
        if (body.next_cursor === null) break;
        cursor = `&cursor=${body.next_cursor}`;
      }
      expect(ids).toEqual([...new Set(ids)].sort((a, b) => a - b));
      expect(ids.length).toBeGreaterThanOrEqual(5);
    });

    test("paused keeps accepting and serves nothing; inactive refuses both", async () => {
      const { id } = await create();
      const key = await http.key("robot", "acme");
      const add = () => http.call("POST", "/api/queue-items", { key, body: { queue_id: id } });
      const next = () => http.call("GET", `/api/queue-items/next?queue_id=${id}`, { key });
      const because = { body: { notes: "the bank sleeps" } };
      expect((await http.call("POST", `/api/queues/${id}/pause`, because)).body.paused).toBe(true);
      const trail = await http.call("GET", `/api/audit?action=queue_pause&target=${id}`);
      expect(trail.body.entries).toMatchObject([{ reason: "the bank sleeps" }]);
      expect((await add()).status).toBe(201);
      expect((await next()).status).toBe(204);
      expect((await http.call("POST", `/api/queues/${id}/resume`)).body.paused).toBe(false);
      expect((await next()).status).toBe(200);
      expect((await add()).status).toBe(201);
      await http.call("PUT", `/api/queues/${id}`, { body: { is_active: false } });
      expect((await add()).body.code).toBe("QUEUE_INACTIVE");
      expect((await next()).status).toBe(204);
    });

    test("is purged of what waits, and what runs goes on", async () => {
      const { id } = await create({ enforce_unique_reference: true });
      const key = await http.key("robot", "acme");
      const add = (reference: string, more = {}) =>
        http.call("POST", "/api/queue-items", { key, body: { queue_id: id, reference, ...more } });
      for (let i = 0; i < 3; i++) await add(`r${i}`);
      await add("late", { delay_ms: 3_600_000 });
      const held = (await http.call("GET", `/api/queue-items/next?queue_id=${id}`, { key })).body;
      const purge = `/api/queues/${id}/purge`;
      expect((await http.call("POST", purge, { body: {} })).status).toBe(400);
      const { body } = await http.call("POST", purge, { body: { notes: "wrong file" } });
      expect(body).toEqual({ id, purged: 3 });
      expect((await statsOf(id)).counts).toEqual({ NEW: 0, IN_PROGRESS: 1, DONE: 0, FAILED: 0 });
      expect((await add("late")).status).toBe(201);
      const done = { status: "DONE", token: held.token };
      expect(
        (await http.call("PUT", `/api/queue-items/${held.id}`, { key, body: done })).status,
      ).toBe(200);
      const audit = (await http.call("GET", "/api/audit?action=queue_purge")).body.entries[0];
      expect(audit).toMatchObject({
        target: String(id),
        reason: "wrong file",
        details: { items: 3 },
      });
    });

    test("is deleted with all its items once their count is confirmed, and that is noted", async () => {
      const { id, name } = await create();
      const key = await http.key("robot", "acme");
      const dead = await dieOnce(http, key, id);
      const body = { queue_id: id, payload: 1 };
      const item = (await http.call("POST", "/api/queue-items", { key, body })).body;
      await http.call("POST", "/api/queue-items", { key, body });
      const held = (await http.call("GET", `/api/queue-items/next?queue_id=${id}`, { key })).body;
      const wrong = await http.call("DELETE", `/api/queues/${id}?confirm_count=2`);
      expect([wrong.status, wrong.body.code]).toEqual([409, "COUNT_MISMATCH"]);
      expect(wrong.body.details).toEqual({ count: 3 });
      expect((await http.call("GET", `/api/queue-items/${item.id}`, { key })).status).toBe(200);
      const gone = await http.call("DELETE", `/api/queues/${id}?confirm_count=3`);
      expect(gone.body).toEqual({ id, deleted_items: 3 });
      for (const one of [dead, item.id, held.id])
        expect((await http.call("GET", `/api/queue-items/${one}`, { key })).status).toBe(404);
      expect((await http.call("GET", `/api/queues/${id}`)).status).toBe(404);
      const settle = { status: "DONE", token: held.token };
      const late = await http.call("PUT", `/api/queue-items/${held.id}`, { key, body: settle });
      expect(late.status).toBe(404);
      const audit = (await http.call("GET", `/api/audit?action=queue_delete&target=${id}`)).body;
      expect(audit.entries).toMatchObject([{ tenant_id: "acme", details: { items: 3 } }]);
      const again = { name, tenant_id: "acme" };
      expect((await http.call("POST", "/api/queues", { body: again })).status).toBe(201);
    });
  });

  describe("a queue's figures", () => {
    test("equal a brute-force count on random data", async () => {
      const { id } = await create({ max_retries: 1 });
      const key = await http.key("robot", "acme");
      const random = randomOf(7, "stats");
      const pick = <T>(from: readonly T[]) => from[Math.floor(random() * from.length)] as T;
      const ends = [
        { status: "DONE", result: { ok: true } },
        { status: "FAILED", error_message: "timeout" },
        { status: "FAILED", exception_type: "business" },
        { status: "FAILED", exception_type: "application", error_message: "Business as usual" },
        { status: "FAILED", result: { failure_reason: "BusinessException" } },
        { status: "FAILED", result: { type: "business" }, error_message: "x" },
        { status: "FAILED", error_message: "a business rule" },
      ];
      const held: { id: string; token: string }[] = [];
      for (let i = 0; i < 150; i++) {
        await http.call("POST", "/api/queue-items", { key, body: { queue_id: id, payload: i } });
        const next = await http.call("GET", `/api/queue-items/next?queue_id=${id}`, { key });
        if (next.status === 200) held.push(next.body);
        const item =
          random() < 0.8 ? held.splice(Math.floor(random() * held.length), 1)[0] : undefined;
        if (item === undefined) continue;
        const body = { ...pick(ends), token: item.token };
        await http.call("PUT", `/api/queue-items/${item.id}`, { key, body });
        if (random() < 0.15) await http.call("DELETE", `/api/queue-items/${item.id}`);
      }
      await http.call("POST", "/api/queue-items", { key, body: { queue_id: id, payload: "last" } });
      const [row] = await http.query<Record<string, number>>(
        `with business as (
        select count(*)::int as n from millrace.dead_job where queue_id = $1 and state = 'dead' and case
          when exception_type is not null then exception_type = 'business'
          else coalesce(result->>'failure_reason', '') || coalesce(result->>'type', '') || error_message ~* 'business' end
      )
      select (select count(*)::int from millrace.job where queue_id = $1 and claim_id is null)
          + (select count(*)::int from millrace.scheduled_job where queue_id = $1) as "NEW",
        (select count(*)::int from millrace.job where queue_id = $1 and claim_id is not null) as "IN_PROGRESS",
        (select count(*)::int from millrace.history where queue_id = $1 and state = 'completed') as "DONE",
        (select count(*)::int from millrace.dead_job where queue_id = $1 and state = 'dead') as "FAILED",
        (select n from business) as business,
        (select avg(ms)::float8 from (
          select extract(epoch from finished_at - started_at) * 1000 as ms from millrace.history
            where queue_id = $1 and state = 'completed'
          union all select extract(epoch from finished_at - started_at) * 1000 from millrace.dead_job
            where queue_id = $1 and state = 'dead') x) as average`,
        [id],
      );
      const { business = 0, average = 0, ...counts } = row ?? {};
      const stats = await statsOf(id);
      expect(stats.counts).toEqual(counts);
      expect(Object.values(counts).every((count) => count > 0)).toBe(true);
      expect(stats.biz_exceptions).toBe(business);
      expect(stats.app_exceptions).toBe(Number(counts.FAILED) - business);
      expect(business).toBeGreaterThan(0);
      expect(stats.processing_ms.average).toBeCloseTo(average, 3);
      expect(stats.oldest_new_seconds).toBeGreaterThan(0);
      expect(stats.oldest_in_progress_seconds).toBeGreaterThan(0);
    });
  });
}

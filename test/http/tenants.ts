import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import { createGate } from "../support/gate.ts";
import { useHttp } from "../support/http.ts";
import { dieOnce } from "../support/http-world.ts";
import { newQueue } from "../support/instance.ts";
import { until } from "../support/until.ts";

export function tenantsSuite(): void {
  const http = useHttp();
  const newTenant = () => `tenant ${randomUUID().slice(0, 8)}`;
  const pathOf = (tenant: string) => `/api/tenants/${encodeURIComponent(tenant)}`;

  describe("a tenant", () => {
    test("is known by its jobs, queues, keys or settings, and listed page by page", async () => {
      const [ofJob, ofQueue, ofKey, ofSettings] = Array.from({ length: 4 }, newTenant);
      const job = { type: "t", queue: newQueue(), tenant_id: ofJob };
      await http.call("POST", "/api/jobs", { body: job });
      await http.call("POST", "/api/queues", { body: { name: newQueue(), tenant_id: ofQueue } });
      await http.key("staff", ofKey);
      await http.millrace.tenants.configure(ofSettings ?? "", { weight: 4 });
      const names: string[] = [];
      for (let cursor = ""; ; ) {
        const { body } = await http.call("GET", `/api/tenants?limit=2${cursor}`);
        names.push(...body.tenants.map(({ tenant_id }: { tenant_id: string }) => tenant_id));
        if (body.next_cursor === null) break;
        cursor = `&cursor=${body.next_cursor}`;
      }
      expect(names).toEqual(expect.arrayContaining([ofJob, ofQueue, ofKey, ofSettings, "default"]));
      expect(new Set(names).size).toBe(names.length);
      const read = await http.call("GET", pathOf(ofSettings ?? ""));
      expect(read.body).toEqual({
        ...{ tenant_id: ofSettings, weight: 4, rate_limit: null, paused: false },
        ...{ capacity: null, warn_depth: null },
      });
      expect((await http.call("GET", pathOf(newTenant()))).body.code).toBe("TENANT_NOT_FOUND");
    });

    test("is changed, paused and resumed by operators, and that is noted", async () => {
      const tenant = newTenant();
      const body = {
        weight: 3,
        rate_limit: { limit: 10, window_ms: 1_000 },
        capacity: 50,
        warn_depth: 40,
      };
      const changed = await http.call("PUT", pathOf(tenant), { body });
      expect(changed.body).toEqual({ tenant_id: tenant, ...body, paused: false });
      const less = await http.call("PUT", pathOf(tenant), { body: { rate_limit: null } });
      expect(less.body).toMatchObject({ weight: 3, rate_limit: null });
      expect((await http.call("POST", `${pathOf(tenant)}/pause`)).body.paused).toBe(true);
      const job = defineJob({ type: "paused", queue: newQueue(), run: () => {} });
      const { id } = await http.millrace.enqueue(job, {}, { tenant });
      const told = await http.call("GET", `/api/jobs/${id}/explain`);
      expect(told.body.reasons[0].code).toBe("tenant_paused");
      await http.work([job]);
      expect((await http.call("POST", `${pathOf(tenant)}/resume`)).body.paused).toBe(false);
      await http.millrace.result(id);
      const { entries } = (await http.call("GET", `/api/audit?target=${tenant}`)).body;
      expect(entries.map(({ action }: { action: string }) => action)).toEqual([
        ...["tenant_resume", "tenant_pause", "tenant_update", "tenant_update"],
      ]);
      for (const wrong of [{ weight: 0 }, { weight: 101 }, { paused: true }, { rate_limit: 5 }])
        expect((await http.call("PUT", pathOf(tenant), { body: wrong })).status).toBe(400);
    });

    test("is not made by a pause: a name that nobody knows is not found", async () => {
      const tenant = newTenant();
      for (const end of ["/pause", "/resume"]) {
        const { status, body } = await http.call("POST", pathOf(tenant) + end);
        expect([status, body.code]).toEqual([404, "TENANT_NOT_FOUND"]);
      }
      expect((await http.call("GET", pathOf(tenant))).status).toBe(404);
    });

    test("sees itself, does not change itself, and finds nobody else", async () => {
      const tenant = newTenant();
      const key = await http.key("admin", tenant);
      const { body } = await http.call("GET", "/api/tenants", { key });
      expect(body).toMatchObject({ tenants: [{ tenant_id: tenant }], next_cursor: null });
      expect((await http.call("GET", pathOf(tenant), { key })).status).toBe(200);
      const erase = `?confirm=${encodeURIComponent(tenant)}&notes=x`;
      for (const [method, end, what] of [
        ["PUT", "", { weight: 100 }],
        ["POST", "/pause", undefined],
        ["POST", "/resume", undefined],
        ["DELETE", erase, undefined],
      ] as const) {
        const own = await http.call(method, pathOf(tenant) + end, { key, body: what });
        expect([own.status, own.body.code]).toEqual([403, "TENANT_FORBIDDEN"]);
        const other = await http.call(method, pathOf("acme") + end, { key, body: what });
        expect([other.status, other.body.code]).toEqual([404, "TENANT_NOT_FOUND"]);
      }
    });
  });

  describe("an erasure", () => {
    const erase = (tenant: string, more = "") =>
      http.call(
        "DELETE",
        `${pathOf(tenant)}?confirm=${encodeURIComponent(tenant)}&notes=gdpr${more}`,
      );
    const word = "zanzibar";
    const named = () => ({ idempotency_key: `${word}-${randomUUID()}`, reference: word });

    /** Something of every kind: waiting, delayed, done, dead, cancelled. */
    async function scene(tenant: string) {
      const name = newQueue();
      const made = { name, tenant_id: tenant };
      const queue = (await http.call("POST", "/api/queues", { body: made })).body;
      const key = await http.key("robot", tenant);
      const producer = await http.key("producer", tenant);
      const job = { type: "t", queue: name, payload: { word }, correlation_id: word };
      const post = async (more: object) => {
        const body = { ...job, ...named(), ...more };
        return (await http.call("POST", "/api/jobs", { key: producer, body })).body.id as string;
      };
      const dead = await dieOnce(http, key, queue.id, { reference: word });
      const done = await post({});
      const next = await http.call("GET", `/api/queue-items/next?queue_id=${queue.id}`, { key });
      const { token } = next.body;
      const end = { status: "DONE", token, result: { word } };
      await http.call("PUT", `/api/queue-items/${done}`, { key, body: end });
      const cancelled = await post({});
      const reason = { reason: word };
      await http.call("POST", `/api/jobs/${cancelled}/cancel`, { key: producer, body: reason });
      const ids = { dead, done, cancelled, waiting: await post({}) };
      const delayed = await post({ delay_ms: 3_600_000 });
      const trigger = { type: "TIME", name, cron: "0 0 1 1 *", job_type: "t", payload: { word } };
      await http.call("POST", "/api/triggers", { body: { ...trigger, tenant_id: tenant } });
      return { queue, key, post, ids: { ...ids, delayed } };
    }

    /** Every row of every table that mentions the word, but for the audit trail. */
    async function mentions(): Promise<string[]> {
      const tables = await http.query<{ name: string }>(
        `select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where n.nspname = 'millrace' and c.relkind = 'r' and c.relname <> 'audit'`,
      );
      const found: string[] = [];
      for (const { name } of tables) {
        const rows = await http.query(
          `select from millrace."${name}" t where row_to_json(t)::text like '%${word}%'`,
        );
        if (rows.length > 0) found.push(name);
      }
      return found;
    }

    test("takes out all that jobs held, keeps hashes, counts and the audit trail, and can be repeated", async () => {
      const tenant = newTenant();
      const { queue, ids } = await scene(tenant);
      expect((await mentions()).length).toBeGreaterThanOrEqual(5);
      const unconfirmed = await http.call("DELETE", `${pathOf(tenant)}?confirm=other&notes=x`);
      expect([unconfirmed.status, unconfirmed.body.code]).toEqual([409, "CONFIRMATION_MISMATCH"]);
      for (const query of ["", `?confirm=${tenant}`, `?confirm=${tenant}&notes=%20`])
        expect((await http.call("DELETE", pathOf(tenant) + query)).status).toBe(400);
      const other = newTenant();
      const unknown = await erase(other);
      expect([unknown.status, unknown.body.code]).toEqual([404, "TENANT_NOT_FOUND"]);
      expect((await mentions()).length).toBeGreaterThanOrEqual(5);

      const { status, body } = await erase(tenant);
      expect([status, body]).toMatchObject([
        200,
        { done: true, running: 0, erased: { waiting: 2, dead_letters: 1 }, next_cursor: null },
      ]);
      expect(await mentions()).toEqual([]);
      const states = { dead: "discarded", done: "completed", cancelled: "deleted" };
      for (const [name, state] of Object.entries({
        ...states,
        ...{ waiting: "deleted", delayed: "deleted" },
      })) {
        const id = ids[name as keyof typeof ids];
        const read = (await http.call("GET", `/api/jobs/${id}?include_payload=true`)).body;
        expect(read, name).toMatchObject({ state, payload: null, result: null });
        expect(read.closed_reason).toBe("erased");
        if (name !== "dead") expect(read.idempotency_key).toMatch(/^sha256:[0-9a-f]{64}$/);
        const again = await http.call("POST", `/api/jobs/${id}/retry`, { body: { notes: "x" } });
        expect(again.body.code, name).toBe("ILLEGAL_TRANSITION");
      }
      const stats = (await http.call("GET", `/api/queues/${queue.id}/stats`)).body;
      expect(stats.counts).toEqual({ NEW: 0, IN_PROGRESS: 0, DONE: 1, FAILED: 0 });
      const target = encodeURIComponent(tenant);
      const { entries } = (await http.call("GET", `/api/audit?target=${target}`)).body;
      expect(entries).toMatchObject([
        { action: "tenant_erase_success", reason: "gdpr", tenant_id: tenant },
        { action: "tenant_erase_requested", reason: "gdpr" },
      ]);
      expect((await http.call("GET", "/api/audit/verify")).body.ok).toBe(true);
      const repeated = (await erase(tenant)).body;
      expect(repeated).toMatchObject({
        ...{ done: true, erased: { waiting: 0, dead_letters: 0, history: 0 } },
      });
      expect((await http.call("GET", pathOf(tenant))).body.paused).toBe(true);
    });

    test("leaves everybody else as they are, in a queue that all share too", async () => {
      const [mine, theirs] = [newTenant(), newTenant()];
      const queue = newQueue();
      const post = async (tenant_id: string) => {
        const body = { type: "t", queue, payload: { word: "kept" }, reference: "kept", tenant_id };
        return (await http.call("POST", "/api/jobs", { body })).body.id as string;
      };
      const ids = [await post(mine), await post(theirs), await post("default")];
      await erase(mine);
      const jobs = await http.millrace.store.find(ids);
      const kept = jobs.filter(({ reference }) => reference === "kept").map(({ tenant }) => tenant);
      expect(kept.sort()).toEqual([theirs, "default"].sort());
    });

    test("asks what runs to stop, and is not done before that has ended and is erased too", async () => {
      const tenant = newTenant();
      const gate = createGate();
      const queue = newQueue();
      let isTold = false;
      const slow = defineJob({
        ...{ type: "slow", queue },
        run: async ({ signal }) => {
          signal.addEventListener("abort", () => {
            isTold = true;
          });
          await gate.opened;
          return { word };
        },
      });
      const { id } = await http.millrace.enqueue(slow, { word }, { tenant, key: `${word}-run` });
      await http.work([slow]);
      await until("it runs", async () => (await http.millrace.get(id))?.state === "running");
      const first = await erase(tenant);
      expect(first).toMatchObject({ status: 202, body: { done: false, running: 1 } });
      expect(first.body.next_cursor).toBe(null);
      await until("it is told", () => isTold);
      gate.open();
      await http.millrace.waitFor(id);
      await until("it is done", async () => (await erase(tenant)).status === 200);
      expect(await mentions()).toEqual([]);
    });

    test("goes on from its cursor, a bounded part at a time, and takes no other tenant's cursor", async () => {
      const tenant = newTenant();
      const queue = newQueue();
      const body = { type: "t", queue, payload: { word }, tenant_id: tenant };
      await http.call("POST", "/api/jobs", { body });
      await http.query(
        `insert into millrace.history (id, state, created_at, finished_at, queue_id, claim_no, retention_days, weight,
          attempt, max_attempts, crash_count, type, tenant, payload)
        select millrace.new_job_id(), 'completed', now(), now(), q.id, 1, q.retention_days, 0, 1, 1, 0, 't', $1,
          '{"word":"${word}"}' from millrace.queue q cross join generate_series(1, 20500) where q.name = $2`,
        [tenant, queue],
      );
      const first = await erase(tenant);
      expect(first).toMatchObject({
        status: 202,
        body: { erased: { waiting: 1, history: 18_999 } },
      });
      // What waited is in history by now, and was looked at there.
      const cursor = `&cursor=${first.body.next_cursor}`;
      const other = newTenant();
      await http.key("staff", other);
      expect((await erase(other, cursor)).body.code).toBe("CURSOR_INVALID");
      const second = await erase(tenant, cursor);
      expect(second).toMatchObject({ status: 200, body: { erased: { history: 1_501 } } });
      expect(await mentions()).toEqual([]);
    });
  });
}

import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import { useHttp } from "../support/http.ts";
import { newQueue } from "../support/instance.ts";

export function jobsSuite(): void {
  const http = useHttp();
  const post = (body: unknown, more = {}) => http.call("POST", "/api/jobs", { body, ...more });
  const read = (id: string, query = "") => http.call("GET", `/api/jobs/${id}${query}`);

  describe("enqueueing", () => {
    test("stores a job that a worker of the same name runs", async () => {
      const queue = newQueue();
      const { id } = (await post({ type: "sum", queue, payload: { a: 2, b: 3 } })).body;
      const sum = defineJob({
        type: "sum",
        queue,
        run: ({ payload }) => Object.values(payload as { a: number }).reduce((a, b) => a + b),
      });
      await http.work([sum]);
      expect(await http.millrace.result(id)).toBe(5);
      const { body } = await read(id, "?include_payload=true");
      expect(body).toMatchObject({ state: "completed", result: 5, payload: { a: 2, b: 3 }, queue });
      expect(body.timeline).toHaveLength(1);
      expect(body.timeline[0]).toMatchObject({ attempt: 1, outcome: "completed" });
      expect(JSON.stringify(body)).not.toContain("token");
    });

    test("answers 201 for a new key, 200 for the same request again, 409 for a different one", async () => {
      const key = randomUUID();
      const job = { type: "t", payload: { n: 1 } };
      const headers = { "idempotency-key": key };
      const first = await post(job, { headers });
      expect([first.status, first.body.existing]).toEqual([201, false]);
      const again = await post(job, { headers });
      expect([again.status, again.body]).toEqual([200, { id: first.body.id, existing: true }]);
      const inBody = await post({ ...job, idempotency_key: key });
      expect([inBody.status, inBody.body.id]).toEqual([200, first.body.id]);
      const other = await post({ ...job, payload: { n: 2 } }, { headers });
      expect([other.status, other.body.code]).toEqual([409, "IDEMPOTENCY_CONFLICT"]);
      expect(other.body.details).toEqual({ existing_id: first.body.id });
      const torn = await post({ ...job, idempotency_key: "another" }, { headers });
      expect(torn.status).toBe(400);
    });

    test("the same key of two tenants is two keys", async () => {
      const job = { type: "t", payload: {}, idempotency_key: randomUUID() };
      const acme = await post(job, { key: await http.key("producer", "acme") });
      const globex = await post(job, { key: await http.key("producer", "globex") });
      expect([acme.status, globex.status]).toEqual([201, 201]);
      expect(acme.body.id).not.toBe(globex.body.id);
    });

    test("of many stores all of them or none", async () => {
      const queue = newQueue();
      const jobs = Array.from({ length: 300 }, (_, n) => ({ type: "t", queue, payload: { n } }));
      const headers = { "idempotency-key": randomUUID() };
      const made = await post({ jobs }, { headers });
      expect(made.status).toBe(201);
      expect(new Set(made.body.jobs.map(({ id }: { id: string }) => id)).size).toBe(300);
      const again = await post({ jobs }, { headers });
      expect(again.status).toBe(200);
      expect(again.body.jobs.map(({ id }: { id: string }) => id)).toEqual(
        made.body.jobs.map(({ id }: { id: string }) => id),
      );
      const bad = [
        ...jobs.slice(0, 5),
        { type: "t", queue, payload: { password: "hunter2hunter2" } },
      ];
      expect((await post({ jobs: bad })).body.code).toBe("PAYLOAD_INVALID");
      const torn = jobs.map((job, n) => ({ ...job, payload: { n, isOther: n === 299 } }));
      expect((await post({ jobs: torn }, { headers })).status).toBe(409);
      expect(
        (
          await http.query(
            "select from millrace.job j join millrace.queue q on q.id = j.queue_id where q.name = $1",
            [queue],
          )
        ).length,
      ).toBe(300);
    });

    test("holds a governed job to its envelope, and to the key's own tenant", async () => {
      const key = await http.key("producer", "acme");
      const payload = {
        tenant_id: "acme",
        correlation_id: randomUUID(),
        idempotency_key: randomUUID(),
      };
      const job = { type: "t", category: "maintenance", payload };
      const made = await post(job, { key });
      expect(made.status, JSON.stringify(made.body)).toBe(201);
      const foreign = { ...job, payload: { ...payload, tenant_id: "globex" } };
      const refused = await post(foreign, { key });
      expect([refused.status, refused.body.code]).toEqual([403, "TENANT_FORBIDDEN"]);
      const { correlation_id: _, ...incomplete } = payload;
      expect((await post({ ...job, payload: incomplete }, { key })).body.code).toBe(
        "PAYLOAD_INVALID",
      );
      expect((await post({ type: "t", priority: "urgent" })).body.code).toBe("UNKNOWN_PRIORITY");
    });

    test("meets a full or inactive queue with 429 and 409", async () => {
      const name = newQueue();
      const queue = (await http.call("POST", "/api/queues", { body: { name, capacity: 2 } })).body;
      for (let i = 0; i < 2; i++) expect((await post({ type: "t", queue: name })).status).toBe(201);
      const full = await post({ type: "t", queue: name });
      expect([full.status, full.body.code]).toEqual([429, "QUEUE_FULL"]);
      expect(full.headers.get("retry-after")).toBe("1");
      expect(full.body.detail).not.toMatch(/\d/);
      await http.call("PUT", `/api/queues/${queue.id}`, { body: { is_active: false } });
      const inactive = await post({ type: "t", queue: name });
      expect([inactive.status, inactive.body.code]).toEqual([409, "QUEUE_INACTIVE"]);
    });
  });

  describe("reading", () => {
    test("security 14: masks payloads for people, shows them to managers who ask, and notes it", async () => {
      const producer = await http.key("producer", "acme");
      const { id } = (await post({ type: "t", payload: { a: 1 } }, { key: producer })).body;
      const path = `/api/jobs/${id}`;
      const own = await http.call("GET", path, { key: producer });
      expect(own.body).toMatchObject({ payload: { a: 1 }, payload_masked: false });
      const staff = await http.key("staff", "acme");
      const masked = await http.call("GET", path, { key: staff });
      expect(masked.body).toMatchObject({ payload: null, payload_masked: true });
      const asked = `${path}?include_payload=true`;
      expect((await http.call("GET", asked, { key: staff })).status).toBe(403);
      const manager = await http.key("manager", "acme");
      expect((await http.call("GET", asked, { key: manager })).body.payload).toEqual({ a: 1 });
      const audit = `/api/audit?target=${id}`;
      const { entries } = (await http.call("GET", audit, { key: manager })).body;
      expect(entries).toMatchObject([
        { action: "job_payload_read", target: id, tenant_id: "acme" },
      ]);
    });

    test("finds jobs by every field, wherever they are by now", async () => {
      const queue = newQueue();
      const type = `find.${queue}`;
      const correlation = randomUUID();
      const make = async (more: object) => (await post({ type, queue, ...more })).body.id as string;
      const ready = await make({ reference: `${queue}-a`, correlation_id: correlation });
      const scheduled = await make({ delay_ms: 3_600_000, correlation_id: correlation });
      const cancelled = await make({ idempotency_key: `${queue}-k` });
      await http.call("POST", `/api/jobs/${cancelled}/cancel`);
      const find = async (query: string) =>
        (await http.call("GET", `/api/jobs?${query}`)).body.jobs.map(
          ({ id }: { id: string }) => id,
        );
      const newest = [cancelled, scheduled, ready];
      expect(await find(`queue=${queue}`)).toEqual(newest);
      expect(await find(`type=${type}`)).toEqual(newest);
      expect(await find(`id=${ready}`)).toEqual([ready]);
      expect(await find(`reference=${queue}-a`)).toEqual([ready]);
      expect(await find(`correlation_id=${correlation}`)).toEqual([scheduled, ready]);
      expect(await find(`correlation_id=${cancelled}`)).toEqual([cancelled]);
      expect(await find(`idempotency_key=${queue}-k`)).toEqual([cancelled]);
      expect(await find(`correlation_id=${correlation}&state=scheduled`)).toEqual([scheduled]);
      expect(await find(`queue=${queue}&state=ready,cancelled`)).toEqual([cancelled, ready]);
      const before = new Date(Date.now() - 60_000).toISOString();
      expect(await find(`queue=${queue}&created_from=${before}`)).toEqual(newest);
      expect(await find(`queue=${queue}&created_to=${before}`)).toEqual([]);
      expect(await find(`queue=${queue}&reference=nothing`)).toEqual([]);
    });

    test("goes through pages without a gap or a repeat, over all tables and past the walk's edge", async () => {
      const queue = newQueue();
      const { millrace } = http;
      const job = defineJob({ type: "paged", queue });
      // More than one page may look at in one table, most of them of another queue.
      await millrace.enqueueMany(defineJob({ type: "other" }), Array(2_500).fill(null));
      const made = await millrace.enqueueMany(job, Array(30).fill(null), (_, i) =>
        i % 3 === 0 ? { delayMs: 3_600_000 } : {},
      );
      await millrace.enqueueMany(defineJob({ type: "other" }), Array(2_500).fill(null));
      for (const { id } of made.slice(0, 10)) await millrace.cancel(id);
      for (const path of [`/api/jobs?queue=${queue}`, `/api/jobs/admin/queue?queue=${queue}`]) {
        const found: string[] = [];
        let cursor = "";
        for (let pages = 0; pages < 50; pages++) {
          const { body } = await http.call("GET", `${path}&limit=7${cursor}`);
          found.push(...body.jobs.map(({ id }: { id: string }) => id));
          if (body.next_cursor === null) break;
          cursor = `&cursor=${body.next_cursor}`;
        }
        expect(found).toEqual(made.map(({ id }) => id).reverse());
      }
    });

    test("refuses a cursor of another list, and pages that are too large", async () => {
      const cursors = [
        "x",
        "e30",
        Buffer.from('{"list":"dlq","place":["a"]}').toString("base64url"),
      ];
      for (const cursor of cursors) {
        const answer = await http.call("GET", `/api/jobs?cursor=${cursor}`);
        expect([answer.status, answer.body.code]).toEqual([400, "CURSOR_INVALID"]);
      }
      expect((await http.call("GET", "/api/jobs?limit=201")).status).toBe(400);
      expect((await http.call("GET", "/api/jobs?limit=0")).status).toBe(400);
    });
  });

  describe("changing", () => {
    test("cancels what waits, and refuses what has ended", async () => {
      const { id } = (await post({ type: "t", queue: newQueue() })).body;
      const path = `/api/jobs/${id}/cancel`;
      const cancelled = await http.call("POST", path, { body: { reason: "not needed" } });
      expect(cancelled.body).toEqual({ id, result: "cancelled" });
      expect((await read(id)).body).toMatchObject({
        state: "cancelled",
        closed_reason: "not needed",
      });
      const again = await http.call("POST", path);
      expect([again.status, again.body.details]).toEqual([409, { state: "cancelled" }]);
    });

    test("retries what was cancelled as a new job that is linked to it", async () => {
      const { id } = (await post({ type: "t", queue: newQueue(), payload: [1] })).body;
      const path = `/api/jobs/${id}/retry`;
      const body = { notes: "needed after all" };
      expect((await http.call("POST", path, { body })).status).toBe(409);
      await http.call("POST", `/api/jobs/${id}/cancel`);
      expect((await http.call("POST", path, { body: {} })).status).toBe(400);
      expect((await http.call("POST", path, { body: { notes: " " } })).status).toBe(400);
      const made = await http.call("POST", path, { body });
      expect(made.status).toBe(201);
      const fresh = await read(made.body.new_job_id, "?include_payload=true");
      expect(fresh.body).toMatchObject({ state: "ready", payload: [1], reprocess_of: id });
      expect((await read(id)).body.reprocessed_as).toBe(made.body.new_job_id);
    });

    test("finds what waits at once, however many have ended since", async () => {
      const queue = newQueue();
      const { id } = (await post({ type: "t", queue })).body;
      await http.query(
        `insert into millrace.history (id, state, created_at, finished_at, queue_id, claim_no, retention_days, weight,
          attempt, max_attempts, crash_count, type, tenant, payload)
        select (lpad(to_hex(n), 8, 'f') || '-0000-7000-8000-000000000000')::uuid, 'completed', now(), now(), q.id, 1, 30,
          5, 1, 5, 0, 'ended', 'default', '{}' from millrace.queue q cross join generate_series(1, 2500) n
        where q.name = $1`,
        [queue],
      );
      try {
        for (const state of ["ready", "ready,scheduled", "running,ready"]) {
          const { body } = await http.call("GET", `/api/jobs?queue=${queue}&state=${state}`);
          expect(body.jobs.map((job: { id: string }) => job.id)).toEqual([id]);
        }
        const ended = await http.call(
          "GET",
          `/api/jobs?queue=${queue}&state=completed,ready&limit=5`,
        );
        expect(ended.body.jobs.map((job: { type: string }) => job.type)).toEqual(
          Array(5).fill("ended"),
        );
      } finally {
        await http.query("delete from millrace.history where type = 'ended'");
      }
    });
  });
}

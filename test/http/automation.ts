import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import { useHttp } from "../support/http.ts";
import { newQueue } from "../support/instance.ts";
import { until } from "../support/until.ts";

export function automationSuite(): void {
  const http = useHttp({}, { triggerMs: 200 });
  const create = (body: object, key?: string) =>
    http.call("POST", "/api/triggers", { body, ...(key === undefined ? {} : { key }) });

  describe("triggers", () => {
    test("are made, read, changed, listed and deleted, and each change is noted", async () => {
      const name = newQueue();
      const made = await create({ type: "TIME", name, cron: "0 9 * * 1", job_type: "report" });
      expect(made.status).toBe(201);
      expect(made.body).toMatchObject({
        name,
        time_zone: "UTC",
        enabled: true,
        tenant_id: "default",
      });
      expect(made.body.next_fire_at).not.toBe(null);
      const path = `/api/triggers/${made.body.id}`;
      const body = { time_zone: "Europe/Lisbon", enabled: false };
      const changed = await http.call("PUT", path, { body });
      expect(changed.body).toMatchObject({ ...body, cron: "0 9 * * 1", next_fire_at: null });
      expect((await http.call("GET", path)).body).toEqual(changed.body);
      const listed = await http.call("GET", `/api/triggers?name=${name}`);
      expect(listed.body.triggers).toEqual([changed.body]);
      expect((await http.call("DELETE", path)).status).toBe(204);
      expect((await http.call("GET", path)).body.code).toBe("TRIGGER_NOT_FOUND");
      const audit = (await http.call("GET", `/api/audit?target=${made.body.id}`)).body.entries;
      expect(audit.map(({ action }: { action: string }) => action)).toEqual([
        "trigger_delete",
        "trigger_update",
        "trigger_create",
      ]);
    });

    test("are refused with a code when they make no sense", async () => {
      const time = { type: "TIME", name: newQueue(), job_type: "t" };
      const good = { ...time, cron: "* * * * *" };
      const codes: [object, string][] = [
        [{ ...time, cron: "61 * * * *" }, "SCHEDULE_INVALID"],
        [{ ...time, cron: "* * * * *", queue: "q" }, "TRIGGER_INVALID"],
        [{ ...good, priority: "urgent" }, "UNKNOWN_PRIORITY"],
        [{ ...good, payload: { password: "hunter2hunter2" } }, "PAYLOAD_INVALID"],
        [{ ...good, payload: "x".repeat(300_000) }, "PAYLOAD_TOO_LARGE"],
        [{ ...good, state: "x" }, "REQUEST_INVALID"],
      ];
      for (const [body, code] of codes) expect((await create(body)).body.code).toBe(code);
      expect((await create({ ...good, enabled: false })).status).toBe(201);
      const again = await create(good);
      expect([again.status, again.body.code]).toEqual([409, "TRIGGER_NAME_TAKEN"]);
      const acme = await http.key("manager", "acme");
      expect((await create({ ...good, enabled: false }, acme)).body.tenant_id).toBe("acme");
    });

    test("of a tenant's own queue make a job of its items", async () => {
      const [items, jobs] = [newQueue(), newQueue()];
      const key = await http.key("manager", "acme");
      const queue = (await http.call("POST", "/api/queues", { key, body: { name: items } })).body;
      await http.call("POST", "/api/queue-items", {
        key,
        body: { queue_id: queue.id, payload: 1 },
      });
      const trigger = { type: "QUEUE", name: items, queue: items, on_arrival: true };
      await create({ ...trigger, job_type: "batch", job_queue: jobs }, key);
      const seen: unknown[] = [];
      await http.work([
        defineJob({ type: "batch", queue: jobs, run: ({ payload }) => void seen.push(payload) }),
      ]);
      const [payload] = await until("the job has run", () => seen.length > 0 && seen);
      const { queue_item_ids } = payload as { queue_item_ids: string[] };
      const path = `/api/queue-items/${queue_item_ids[0]}`;
      const done = await until("the item is done", async () => {
        const { body } = await http.call("GET", path, { key });
        return body.status === "DONE" && body;
      });
      expect(done.job_id).toMatch(/^[0-9a-f-]{36}$/);
    });
  });

  describe("webhooks", () => {
    test("are made with a secret that is shown once, changed, listed and deleted", async () => {
      const body = { url: "https://example.com/hook", kinds: ["job.dead"], tenant_id: "acme" };
      const made = await http.call("POST", "/api/webhooks", { body });
      expect(made.body.secret).toMatch(/^whsec_[0-9a-f]{64}$/);
      const path = `/api/webhooks/${made.body.id}`;
      const changed = await http.call("PUT", path, { body: { is_active: false, queues: ["a"] } });
      expect(changed.body).toMatchObject({ is_active: false, queues: ["a"], kinds: ["job.dead"] });
      expect(changed.body).not.toHaveProperty("secret");
      const { webhooks } = (await http.call("GET", "/api/webhooks")).body;
      expect(webhooks).toContainEqual(changed.body);
      expect((await http.call("DELETE", path)).status).toBe(204);
      expect((await http.call("DELETE", path)).body.code).toBe("WEBHOOK_NOT_FOUND");
      const nowhere = `/api/webhooks/${randomUUID()}`;
      expect((await http.call("PUT", nowhere, { body: {} })).status).toBe(404);
    });

    test("lead to public HTTPS addresses only", async () => {
      for (const url of ["http://example.com/", "https://127.0.0.1/", "https://169.254.169.254/"]) {
        const answer = await http.call("POST", "/api/webhooks", { body: { url } });
        expect([answer.status, answer.body.code]).toEqual([400, "WEBHOOK_URL_REFUSED"]);
      }
    });
  });

  describe("the cluster", () => {
    test("shows who works, to those who may see all tenants", async () => {
      const queue = newQueue();
      await http.work([defineJob({ type: "seen", queue, run: () => {} })], { name: queue });
      const { workers } = (await http.call("GET", "/api/workers")).body;
      expect(workers).toContainEqual(expect.objectContaining({ name: queue, state: "live" }));
      const key = await http.key("staff", "acme");
      const answer = await http.call("GET", "/api/workers", { key });
      expect([answer.status, answer.body.code]).toEqual([403, "TENANT_FORBIDDEN"]);
    });

    test("shows who leads and how jobs are dispatched", async () => {
      const before = (await http.call("GET", "/api/cluster")).body;
      expect(before).toMatchObject({
        leader: { in_office: false, term: 0, holder: null },
        dispatch: "direct",
        redis: "unused",
        postgres: { status: "ok" },
      });
      const other = await http.connect();
      const manager = await other.manage();
      await until("it leads", () => manager.isLeader);
      const { leader } = (await http.call("GET", "/api/cluster")).body;
      expect(leader).toMatchObject({ in_office: true, holder: manager.id, term: manager.term });
    });
  });
}

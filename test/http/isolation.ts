// What one tenant does is neither seen nor felt by another, in queues that they share as well.

import { beforeAll, describe, expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import { useHttp } from "../support/http.ts";
import { newQueue } from "../support/instance.ts";

export function isolationSuite(): void {
  const http = useHttp();
  const keys = { acme: "", globex: "" };
  beforeAll(async () => {
    keys.acme = await http.key("manager", "acme");
    keys.globex = await http.key("manager", "globex");
  });
  type Tenant = keyof typeof keys;

  async function queue(tenant?: Tenant, more: object = {}): Promise<number> {
    const body = {
      name: newQueue(),
      ...(tenant === undefined ? {} : { tenant_id: tenant }),
      ...more,
    };
    return (await http.call("POST", "/api/queues", { body })).body.id;
  }
  const add = (tenant: Tenant, queueId: number, more: object = {}) =>
    http.call("POST", "/api/queue-items", {
      key: keys[tenant],
      body: { queue_id: queueId, ...more },
    });

  describe("next by queue_id, with a key of all tenants", () => {
    const next = (queueId: number, tenant: string, key?: string) => {
      const more = key === undefined ? {} : { key };
      return Promise.all([
        http.call("POST", "/api/queue-items/next", {
          ...more,
          body: { queue_id: queueId, tenant_id: tenant },
        }),
        http.call("GET", `/api/queue-items/next?queue_id=${queueId}&tenant_id=${tenant}`, more),
      ]);
    };

    test("serves nothing of another tenant's own queue", async () => {
      const id = await queue("globex");
      await add("globex", id);
      for (const answer of await next(id, "acme"))
        expect([answer.status, answer.body.code]).toEqual([404, "QUEUE_NOT_FOUND"]);
      expect((await next(id, "globex")).map(({ status }) => status).sort()).toEqual([200, 204]);
    });

    test("serves the named tenant's items of a shared queue, and no others", async () => {
      const id = await queue();
      await add("globex", id, { payload: "of globex" });
      for (const { status } of await next(id, "acme")) expect(status).toBe(204);
      const served = (await next(id, "globex")).find(({ status }) => status === 200);
      expect(served?.body.payload).toBe("of globex");
    });

    test("refuses a tenant's key that names another", async () => {
      const id = await queue();
      for (const answer of await next(id, "globex", keys.acme))
        expect([answer.status, answer.body.code]).toEqual([403, "TENANT_FORBIDDEN"]);
    });
  });

  test("references are unique for each tenant of a shared queue: none can be probed or blocked", async () => {
    const id = await queue(undefined, { enforce_unique_reference: true });
    expect((await add("globex", id, { reference: "INV-7" })).status).toBe(201);
    expect((await add("acme", id, { reference: "INV-7" })).status).toBe(201);
    for (const tenant of ["globex", "acme"] as const) {
      const again = await add(tenant, id, { reference: "INV-7" });
      expect([again.status, again.body.code]).toEqual([409, "REFERENCE_TAKEN"]);
    }
    const { name } = (await http.call("GET", `/api/queues/${id}`)).body;
    const enqueueSql = (tenant: string) =>
      http.query("select millrace.enqueue('t', '{}', $1, $2, reference => 'INV-8')", [
        name,
        tenant,
      ]);
    await enqueueSql("acme");
    await enqueueSql("globex");
    await expect(enqueueSql("acme")).rejects.toThrow(/^REFERENCE_TAKEN/);
    expect((await add("globex", id, { reference: "INV-8" })).status).toBe(409);
  });

  test("nobody makes Millrace deliver to another tenant's webhook, signed", async () => {
    const hook = { url: "https://example.com/", tenant_id: "globex" };
    const { body: webhook } = await http.call("POST", "/api/webhooks", { body: hook });
    const forged = {
      type: "millrace.webhook",
      queue: "millrace.webhooks",
      payload: { webhook_id: webhook.id },
    };
    const producer = await http.key("producer", "acme");
    for (const body of [forged, { jobs: [forged] }]) {
      const answer = await http.call("POST", "/api/jobs", { key: producer, body });
      expect([answer.status, answer.body.code]).toEqual([400, "REQUEST_INVALID"]);
    }
    const body = { name: "millrace.webhooks" };
    const made = await http.call("POST", "/api/queues", { key: keys.acme, body });
    expect([made.status, made.body.code]).toEqual([400, "REQUEST_INVALID"]);
  });

  describe("a queue that comes into being by a tenant's key", () => {
    const queuesOf = async (key?: string) =>
      (await http.call("GET", "/api/queues?limit=200", key === undefined ? {} : { key })).body
        .queues as { name: string; tenant_id: string | null }[];

    test("is that tenant's, and workers of the name serve it", async () => {
      const name = newQueue();
      const producer = await http.key("producer", "acme");
      const body = { type: "greet", queue: name, payload: { to: "you" } };
      const early = await http.call("POST", "/api/jobs", { key: producer, body });
      expect(early.status).toBe(201);
      const [made] = (await queuesOf()).filter((one) => one.name === name);
      expect(made?.tenant_id).toBe("acme");
      expect((await queuesOf(keys.globex)).map((one) => one.name)).not.toContain(name);
      const greet = defineJob({
        type: "greet",
        queue: name,
        run: ({ payload }) => Promise.resolve(`hello, ${(payload as { to: string }).to}`),
      });
      await http.work([greet]);
      expect(await http.millrace.result(early.body.id)).toBe("hello, you");
    });

    test("is served by workers that run already", async () => {
      const [name, other] = [newQueue(), newQueue()];
      const run = () => Promise.resolve("done");
      await http.work([defineJob({ type: "t", queue: name, run })]);
      const body = { name, tenant_id: "acme" };
      expect((await http.call("POST", "/api/queues", { body })).status).toBe(201);
      const producer = await http.key("producer", "acme");
      const job = { type: "t", queue: name };
      const own = await http.call("POST", "/api/jobs", { key: producer, body: job });
      expect(await http.millrace.result(own.body.id)).toBe("done");
      const shared = await http.call("POST", "/api/jobs", { body: { ...job, queue: other } });
      expect(shared.status).toBe(201);
      expect((await queuesOf()).find((one) => one.name === other)?.tenant_id).toBe(null);
    });

    test("through a trigger that names another tenant's queue is its own", async () => {
      const id = await queue("globex");
      const { name } = (await http.call("GET", `/api/queues/${id}`)).body;
      await add("globex", id);
      const jobQueue = newQueue();
      const trigger = await http.call("POST", "/api/triggers", {
        key: keys.acme,
        body: { type: "QUEUE", name, queue: name, job_type: "batch", job_queue: jobQueue },
      });
      expect(trigger.status).toBe(201);
      const named = (await queuesOf()).filter((one) => one.name === name);
      expect(named.map((one) => one.tenant_id).sort()).toEqual(["acme", "globex"]);
      const [made] = (await queuesOf()).filter((one) => one.name === jobQueue);
      expect(made?.tenant_id).toBe("acme");
      const changed = newQueue();
      await http.call("PUT", `/api/triggers/${trigger.body.id}`, {
        key: keys.acme,
        body: { job_queue: changed },
      });
      expect((await queuesOf()).find((one) => one.name === changed)?.tenant_id).toBe("acme");
      const { body } = await http.call("GET", `/api/queues/${id}/stats`);
      expect(body.counts.NEW).toBe(1);
    });
  });
}

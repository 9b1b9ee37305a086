// Refusals that no other suite comes by, route by route.

import { randomUUID } from "node:crypto";
import pg from "pg";
import { expect, test } from "vitest";
import { HttpServer } from "../../src/http/server.ts";
import { adminKey, send, useHttp } from "../support/http.ts";
import { newQueue } from "../support/instance.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

export function refusalsSuite(): void {
  const http = useHttp({}, { keyWaitMs: 100 });
  const codeOf = async (method: string, path: string, body?: unknown, key = adminKey) =>
    (await http.call(method, path, { key, body })).body.code as string;

  const makeQueue = async (more: object = {}) => {
    const body = { name: newQueue(), ...more };
    return (await http.call("POST", "/api/queues", { body })).body as { id: number; name: string };
  };

  test("a cursor of another list is refused by every list", async () => {
    const { next_cursor } = (await http.call("GET", "/api/jobs?limit=1")).body;
    for (const path of [
      "/api/audit",
      "/api/jobs/admin/queue",
      "/api/queues",
      "/api/jobs/admin/dlq",
      "/api/triggers",
      "/api/tenants",
    ])
      expect(await codeOf("GET", `${path}?cursor=${next_cursor ?? "eyJsaXN0IjoieCJ9"}`)).toBe(
        "CURSOR_INVALID",
      );
  });

  test("another tenant is refused wherever one can be named", async () => {
    const key = await http.key("manager", "globex");
    const named = { tenant_id: "acme" };
    const repair = { notes: "x", confirm_count: 0, filter: named };
    const calls: [string, string, unknown?][] = [
      ["GET", "/api/jobs/admin/queue?tenant_id=acme"],
      ["POST", "/api/queue-items/next", { queue_name: "q", ...named }],
      ["POST", "/api/jobs/admin/dlq/reprocess", repair],
      ["POST", "/api/jobs/admin/dlq/discard", repair],
      ["GET", "/api/jobs/admin/dlq/statistics?tenant_id=acme"],
      ["GET", "/api/triggers?tenant_id=acme"],
      [
        "POST",
        "/api/triggers",
        { type: "TIME", name: "x", job_type: "x", cron: "* * * * *", ...named },
      ],
      ["POST", "/api/webhooks", { url: "https://example.com", ...named }],
    ];
    for (const [method, path, body] of calls)
      expect(await codeOf(method, path, body, key), path).toBe("TENANT_FORBIDDEN");
  });

  test("payloads, queues and keys are refused alike for jobs and items, by id and by name", async () => {
    const queue = await makeQueue({ enforce_unique_reference: true });
    const full = await makeQueue({ capacity: 0 });
    const closed = await makeQueue({ is_active: false });
    const bounded = await makeQueue({ tenant_capacity: 0 });
    const to = {
      job: ({ name }: { name: string }) => ["/api/jobs", { type: "t", queue: name }] as const,
      byId: ({ id }: { id: number }) => ["/api/queue-items", { queue_id: id }] as const,
      byName: ({ name }: { name: string }) =>
        ["/api/queue-items/add", { queue_name: name }] as const,
    };
    for (const way of Object.values(to)) {
      const post = (target: typeof queue, more: object) => {
        const [path, body] = way(target);
        return codeOf("POST", path, { ...body, ...more });
      };
      expect(await post(queue, { payload: { password: "hunter2hunter2" } })).toBe(
        "PAYLOAD_INVALID",
      );
      expect(await post(queue, { payload: "x".repeat(300_000) })).toBe("PAYLOAD_TOO_LARGE");
      expect(await post(full, {})).toBe("QUEUE_FULL");
      expect(await post(closed, {})).toBe("QUEUE_INACTIVE");
      expect(await post(bounded, {})).toBe("TENANT_FULL");
      const reference = randomUUID();
      expect(await post(queue, { reference })).toBe(undefined);
      expect(await post(queue, { reference })).toBe("REFERENCE_TAKEN");
      const idempotency_key = randomUUID();
      expect(await post(queue, { idempotency_key, payload: 1 })).toBe(undefined);
      expect(await post(queue, { idempotency_key, payload: 1 })).toBe(undefined);
      expect(await post(queue, { idempotency_key, payload: 2 })).toBe("IDEMPOTENCY_CONFLICT");
    }
    expect(await codeOf("GET", "/api/queue-items/next?queue_name=nowhere")).toBe("QUEUE_NOT_FOUND");
    expect(await codeOf("POST", "/api/queue-items/next", { queue_id: 2_000_000_000 })).toBe(
      "QUEUE_NOT_FOUND",
    );
  });

  test("a key that somebody's open transaction holds is busy", async () => {
    const { id, name } = await makeQueue();
    const client = new pg.Client({ connectionString: http.url });
    await client.connect();
    try {
      const key = randomUUID();
      await client.query("begin");
      await client.query(
        "insert into millrace.unique_name (scope, key, job_id) values ('key:default', $1, gen_random_uuid())",
        [key],
      );
      for (const [path, body] of [
        ["/api/jobs", { type: "t", queue: name }],
        ["/api/queue-items", { queue_id: id }],
        ["/api/queue-items/add", { queue_name: name }],
      ] as const) {
        const answer = await http.call("POST", path, { body: { ...body, idempotency_key: key } });
        expect([answer.status, answer.body.code]).toEqual([503, "KEY_BUSY"]);
        expect(answer.headers.get("retry-after")).toBe("1");
      }
    } finally {
      await client.end();
    }
  });

  test("a repair of many with a wrong count, and changes of triggers and webhooks that make no sense", async () => {
    const repair = { notes: "x", confirm_count: 7, filter: { job_type: newQueue() } };
    expect(await codeOf("POST", "/api/jobs/admin/dlq/discard", repair)).toBe("COUNT_MISMATCH");
    const trigger = { type: "TIME", job_type: "t", cron: "0 0 1 1 *" };
    const make = (name: string) =>
      http.call("POST", "/api/triggers", { body: { ...trigger, name } });
    const [first, second] = [await make(newQueue()), await make(newQueue())];
    const path = `/api/triggers/${first.body.id}`;
    const codes: [object, string][] = [
      [{ cron: "x" }, "SCHEDULE_INVALID"],
      [{ queue: "q" }, "TRIGGER_INVALID"],
      [{ name: second.body.name }, "TRIGGER_NAME_TAKEN"],
      [{ priority: "urgent" }, "UNKNOWN_PRIORITY"],
      [{ payload: { password: "hunter2hunter2" } }, "PAYLOAD_INVALID"],
      [{ payload: "x".repeat(300_000) }, "PAYLOAD_TOO_LARGE"],
    ];
    for (const [body, code] of codes) expect(await codeOf("PUT", path, body)).toBe(code);
    const hook = { url: "https://example.com/", tenant_id: "acme" };
    const { id } = (await http.call("POST", "/api/webhooks", { body: hook })).body;
    expect(await codeOf("PUT", `/api/webhooks/${id}`, { url: "http://10.0.0.1/" })).toBe(
      "WEBHOOK_URL_REFUSED",
    );
  });

  test("a database that is away is told, and the server is ready again when it is back", async () => {
    const proxy = await TcpProxy.start(http.url);
    const server = new HttpServer({
      millrace: await http.connect({ databaseUrl: proxy.url }),
      port: 0,
      adminKey,
    });
    await server.start();
    try {
      expect((await send(server.url, "GET", "/readyz")).status).toBe(200);
      proxy.refuse();
      const ready = await send(server.url, "GET", "/readyz");
      expect(ready.status).toBe(503);
      expect(ready.body.parts.postgres).toBe("unreachable");
      for (const path of ["/api/jobs", "/api/queues", "/api/audit", "/api/keys"]) {
        const answer = await send(server.url, "GET", path);
        expect([answer.status, answer.body.code]).toEqual([503, "DATABASE_UNAVAILABLE"]);
        expect(answer.headers.get("retry-after")).toBe("1");
        expect(JSON.stringify(answer.body)).not.toMatch(/ECONN|127\.0\.0\.1|postgres:/);
      }
      expect((await send(server.url, "GET", "/healthz")).status).toBe(200);
      proxy.open();
      await until(
        "it is ready",
        async () => (await send(server.url, "GET", "/readyz")).status === 200,
      );
    } finally {
      await server.stop();
      await proxy.close();
    }
  });
}

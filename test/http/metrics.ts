// Who may read /metrics, and what it says.

import { expect, test } from "vitest";
import { HttpServer } from "../../src/http/server.ts";
import { Exposition } from "../support/exposition.ts";
import { adminKey, send, useHttp } from "../support/http.ts";
import { newQueue } from "../support/instance.ts";
import { expectBothReadersToAgree } from "../support/second-reader.ts";
import { until } from "../support/until.ts";

export function metricsSuite(): void {
  const http = useHttp();

  test("are text that a strict reader of Prometheus' format accepts, and another reads alike", async () => {
    const queue = newQueue();
    const body = {
      jobs: [
        { type: "metrics.test", queue },
        { type: "metrics.test", queue },
      ],
    };
    await http.call("POST", "/api/jobs", { body });
    const key = await http.key("staff");
    const answer = await http.call("GET", "/metrics", { key });
    expect(answer.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    expectBothReadersToAgree(answer.body);
    const read = new Exposition(answer.body);
    expect(read.value("millrace_jobs_enqueued_total", { queue, tenant: "" })).toBe(2);
    const route = "/api/jobs";
    const requests = { method: "POST", route, status: "201" };
    expect(read.value("millrace_http_requests_total", requests)).toBe(1);
  });

  test("item 2: are of all tenants, and therefore for no key that belongs to one", async () => {
    const name = newQueue();
    await http.call("POST", "/api/queues", { body: { name, tenant_id: "acme" } });
    for (const role of ["staff", "manager", "admin"] as const) {
      const answer = await http.call("GET", "/metrics", { key: await http.key(role, "acme") });
      expect([answer.status, answer.body.code]).toEqual([403, "TENANT_FORBIDDEN"]);
      expect(JSON.stringify(answer.body)).not.toContain(name);
    }
    const key = await http.key("staff");
    await until("who belongs to no tenant sees it", async () =>
      (await http.call("GET", "/metrics", { key })).body.includes(`tenant="acme",queue="${name}"`),
    );
  });

  test("take no key when they are public, and nothing else is open for that", async () => {
    const { millrace } = http;
    const open = new HttpServer({ millrace, port: 0, adminKey, metricsArePublic: true });
    await open.start();
    try {
      const answer = await send(open.url, "GET", "/metrics", { key: null });
      expect(new Exposition(answer.body).value("millrace_up")).toBe(1);
      const key = await http.key("producer", "acme");
      expect((await send(open.url, "GET", "/metrics", { key })).status).toBe(200);
      expect((await send(open.url, "GET", "/api/cluster", { key: null })).status).toBe(401);
    } finally {
      await open.stop();
    }
  });
}

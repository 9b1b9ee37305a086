// The frame around all routes: limits, problems, headers, and what happens to what is not a request.

import { once } from "node:events";
import { connect } from "node:net";
import { describe, expect, test } from "vitest";
import { HttpServer } from "../../src/http/server.ts";
import { MillraceError } from "../../src/index.ts";
import { adminKey, send, useHttp } from "../support/http.ts";
import { refusal } from "../support/instance.ts";

export function frameSuite(): void {
  const http = useHttp({ bodyBytes: 100_000, requestTimeoutMs: 1_000 });

  const job = { type: "t", payload: {} };

  describe("requests", () => {
    test("mean the same with a trailing slash", async () => {
      expect((await http.call("GET", "/healthz/", { key: null })).status).toBe(200);
      const made = await http.call("POST", "/api/jobs/", { body: job });
      expect(made.status).toBe(201);
      expect((await http.call("GET", `/api/jobs/${made.body.id}/`)).status).toBe(200);
      expect((await http.call("POST", `/api/jobs/${made.body.id}/cancel/`)).status).toBe(200);
    });

    test("that fail are told as problem+json with a code and the request's id", async () => {
      const answer = await http.call("POST", "/api/jobs", { body: { type: 7, payload: {} } });
      expect(answer.headers.get("content-type")).toMatch(/^application\/problem\+json/);
      expect(answer.body).toMatchObject({
        type: "urn:millrace:problem:request-invalid",
        status: 400,
        code: "REQUEST_INVALID",
        instance: answer.headers.get("x-request-id"),
        errors: [{ path: "body.type" }],
      });
      const nowhere = await http.call("GET", "/api/nothing");
      expect([nowhere.status, nowhere.body.code]).toEqual([404, "ROUTE_NOT_FOUND"]);
      const wrongMethod = await http.call("PUT", "/api/jobs", { body: job });
      expect([wrongMethod.status, wrongMethod.body.code]).toEqual([404, "ROUTE_NOT_FOUND"]);
    });

    test("are JSON and nothing else", async () => {
      const headers = { "content-type": "text/plain" };
      const text = await http.call("POST", "/api/jobs", { body: JSON.stringify(job), headers });
      expect([text.status, text.body.code]).toEqual([415, "MEDIA_TYPE_UNSUPPORTED"]);
      const broken = await http.call("POST", "/api/jobs", { body: '{"type":' });
      expect([broken.status, broken.body.code]).toEqual([400, "REQUEST_INVALID"]);
    });

    test("security 15 and 16: have a size, a depth and keys that are limited before they are used", async () => {
      const large = await http.call("POST", "/api/jobs", { body: { type: "x".repeat(100_001) } });
      expect([large.status, large.body.code]).toEqual([413, "BODY_TOO_LARGE"]);
      const deep = `{"type":"t","payload":${"[".repeat(40_000)}${"]".repeat(40_000)}}`;
      expect((await http.call("POST", "/api/jobs", { body: deep })).body.code).toBe(
        "REQUEST_INVALID",
      );
      for (const key of [
        "__proto__",
        "\\u005f_proto__",
        "__pr\\u006fto__",
        "constructor",
        "prototype",
      ]) {
        const body = `{"type":"t","payload":{"a":{"${key}":{"polluted":true}}}}`;
        const answer = await http.call("POST", "/api/jobs", { body });
        expect([answer.status, key]).toEqual([400, key]);
      }
      expect(({} as { polluted?: boolean }).polluted).toBe(undefined);
      const headers = { "x-long": "x".repeat(20_000) };
      expect((await fetch(`${http.baseUrl}/healthz`, { headers })).status).toBe(431);
    });

    test("security 3: may not set what is not theirs to set: state, token, attempt, tenant", async () => {
      for (const more of [{ state: "completed" }, { token: "x" }, { attempt: 3 }, { id: "x" }]) {
        const answer = await http.call("POST", "/api/jobs", { body: { ...job, ...more } });
        expect([answer.status, answer.body.code]).toEqual([400, "REQUEST_INVALID"]);
        const queue = await http.call("POST", "/api/queues", { body: { name: "q", ...more } });
        expect(queue.status).toBe(400);
      }
    });

    test("hold no character that PostgreSQL cannot store", async () => {
      for (const bad of ["a\u0000b", "\ud800", "tab\there"]) {
        for (const field of ["type", "queue", "reference", "correlation_id", "idempotency_key"]) {
          const answer = await http.call("POST", "/api/jobs", { body: { ...job, [field]: bad } });
          expect([answer.status, field]).toEqual([400, field]);
        }
        const payload = { text: bad };
        const answer = await http.call("POST", "/api/jobs", { body: { type: "t", payload } });
        expect(answer.status).toBe(bad.startsWith("tab") ? 201 : 400);
      }
      const path = `/api/jobs?reference=${encodeURIComponent("a\u0000b")}`;
      expect((await http.call("GET", path)).status).toBe(400);
    });

    test("security 20: name a secret in a payload by its path, and never its value", async () => {
      const secret = "AKIAIOSFODNN7EXAMPLE";
      const body = { type: "t", payload: { deep: { note: `key ${secret}` } } };
      const answer = await http.call("POST", "/api/jobs", { body });
      expect([answer.status, answer.body.code]).toEqual([400, "PAYLOAD_INVALID"]);
      expect(answer.body.errors[0].path).toContain("deep.note");
      expect(JSON.stringify(answer.body)).not.toContain(secret);
    });
  });

  describe("the server", () => {
    test("says with every answer that it is not to be framed, sniffed or cached", async () => {
      for (const path of ["/healthz", "/api/nothing", "/api/jobs"]) {
        const { headers } = await http.call("GET", path, { key: null });
        expect(headers.get("x-content-type-options")).toBe("nosniff");
        expect(headers.get("cache-control")).toBe("no-store");
        expect(headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
        expect(headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
      }
    });

    test("security 22: cuts off a request that does not arrive", async () => {
      const { port, hostname } = new URL(http.baseUrl);
      const socket = connect(Number(port), hostname);
      const said = await new Promise<string>((resolve, reject) => {
        let text = "";
        socket.on("data", (chunk) => {
          text += chunk;
        });
        socket.on("close", () => resolve(text));
        socket.on("error", reject);
        socket.write(
          `POST /api/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${adminKey}\r\n` +
            "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{",
        );
      });
      expect(said).toContain("408");
    });

    test("stops although somebody keeps connections open, used or not", async () => {
      const server = new HttpServer({ millrace: http.millrace, port: 0, adminKey });
      await server.start();
      const { port, hostname } = new URL(server.url);
      const silent = connect(Number(port), hostname);
      const used = connect(Number(port), hostname);
      const closed = [silent, used].map((socket) => once(socket, "close"));
      used.write("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
      await once(used, "data");
      used.resume();
      await server.stop();
      await Promise.all(closed);
    });

    test("is ready when PostgreSQL is, and says who leads", async () => {
      const before = await http.call("GET", "/readyz", { key: null });
      expect(before.body).toEqual({ status: "ready", parts: { postgres: "ok", leader: "vacant" } });
    });

    test("security 9: is not opened beyond this machine while nobody can have a key, nor with a short one", async () => {
      const { millrace } = http;
      const open = new HttpServer({ millrace, host: "0.0.0.0", port: 0 });
      const error = await refusal(open.start());
      expect(error.code).toBe("OPTION_INVALID");
      expect(() => new HttpServer({ millrace, port: 0, adminKey: "secret" })).toThrow(
        MillraceError,
      );
      await http.key("robot", "acme");
      await open.start();
      const { port } = new URL(open.url);
      expect((await send(`http://127.0.0.1:${port}`, "GET", "/api/jobs")).status).toBe(401);
      await open.stop();
    });

    test("tells of what it answered by events, without URL, payload or key", async () => {
      const told: unknown[] = [];
      const off = http.millrace.events.on("http.answered", (event) => told.push(event));
      const answer = await http.call("GET", "/api/jobs?reference=private-reference");
      off();
      expect(told).toEqual([
        {
          request: answer.headers.get("x-request-id"),
          method: "GET",
          route: "/api/jobs",
          status: 200,
          durationMs: expect.any(Number),
          key: "00000000-0000-0000-0000-000000000001",
          tenant: null,
        },
      ]);
      expect(JSON.stringify(told)).not.toContain("private-reference");
    });
  });
}

// What comes in is measured before it is used, and is data wherever it goes.

import { once } from "node:events";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { contract } from "../../src/http/contract/contract.ts";
import { HttpServer } from "../../src/http/server.ts";
import { adminKey, useHttp } from "../support/http.ts";
import { newQueue } from "../support/instance.ts";

export function inputSuite(): void {
  const http = useHttp();

  test("security 13: pages, counts and waits are capped in every list", async () => {
    const capped = contract.flatMap(({ method, path, query }) =>
      Object.keys(query?.shape ?? {})
        .filter((name) => ["limit", "count", "wait_seconds"].includes(name))
        .map((name) => ({ method, path: path.replace(/\{\w+\}/, "1"), name })),
    );
    expect(capped.length).toBeGreaterThan(6);
    for (const { method, path, name } of capped)
      for (const value of ["1000000", "-1", "1e9", "", "x", "NaN"]) {
        const answer = await http.call(method, `${path}?${name}=${value}&queue_name=q`);
        const told = answer.body?.errors?.map((error: { path: string }) => error.path) ?? [];
        // Nothing at all means what is left out means; everything else is told.
        const isZeroWait = name === "wait_seconds" && value === "";
        if (!isZeroWait) expect(told, `${path} ${name}=${value}`).toContain(`query.${name}`);
      }
  });

  test("security 15: depth, number of keys and length of strings are limited in every payload", async () => {
    const deep = (levels: number) => JSON.parse("[".repeat(levels) + "]".repeat(levels));
    const wide = (keys: number) =>
      Object.fromEntries(Array.from({ length: keys }, (_, i) => [`k${i}`, 0]));
    const queue = { queue_name: newQueue() };
    await http.call("POST", "/api/queues", { body: { name: queue.queue_name } });
    const send = async (payload: unknown) => {
      const job = await http.call("POST", "/api/jobs", { body: { type: "t", payload } });
      const body = { ...queue, payload };
      const item = await http.call("POST", "/api/queue-items/add", { body });
      expect(item.status).toBe(job.status);
      return job.body.errors?.[0].code ?? job.status;
    };
    expect(await send(deep(64))).toBe(201);
    expect(await send(deep(65))).toBe("too_deep");
    expect(await send(wide(10_000))).toBe(201);
    expect(await send(wide(10_001))).toBe("too_many_keys");
    expect(await send("x".repeat(200_000))).toBe(201);
    expect([413, "too_large", "string_too_long"]).toContain(await send("x".repeat(300_000)));
  });

  test("security 16: what looks like code or like an object's inside is stored as it is, or refused", async () => {
    const words = ["function () { return 1 }", "{{constructor.constructor('return 1')()}}"];
    const payload = { words, toString: "text", $ne: null, "a.b": 1 };
    const made = await http.call("POST", "/api/jobs", { body: { type: "t", payload } });
    const read = await http.call("GET", `/api/jobs/${made.body.id}?include_payload=true`);
    expect(read.body.payload).toEqual(payload);
    for (const key of ["__proto__", "constructor", "prototype"]) {
      const body = `{"type":"t","payload":[{"${key}":1}]}`;
      expect((await http.call("POST", "/api/jobs", { body })).status, key).toBe(400);
    }
  });

  test("security 17: SQL in any field is a text like others, in what is stored and what is searched", async () => {
    const before = await http.query("select count(*) from millrace.queue");
    const words = [
      ...["'; drop table millrace.queue; --", "' or '1'='1", "$1", "%", "_", "\\", "a'b\"c`d"],
      ...["millrace.job", "@channel", "{a,b}", "NULL", "(select 1)"],
    ];
    for (const text of words) {
      const fields = { type: text, reference: text, correlation_id: text };
      const body = { ...fields, payload: { text }, queue: `q ${text}` };
      const made = await http.call("POST", "/api/jobs", { body });
      expect([made.status, text]).toEqual([201, text]);
      const found = async (field: string, value: string) => {
        const path = `/api/jobs?${field}=${encodeURIComponent(value)}`;
        return (await http.call("GET", path)).body.jobs.map(({ id }: { id: string }) => id);
      };
      for (const field of ["reference", "correlation_id", "type"])
        expect(await found(field, text), `${field} ${text}`).toEqual([made.body.id]);
      expect(await found("queue", `q ${text}`), text).toEqual([made.body.id]);
      const read = await http.call("GET", `/api/jobs/${made.body.id}?include_payload=true`);
      expect(read.body).toMatchObject({ ...fields, queue: `q ${text}`, payload: { text } });
      const tenant = `/api/audit?target=${encodeURIComponent(text)}`;
      expect((await http.call("GET", tenant)).body.entries).toEqual([]);
    }
    const [{ count } = { count: 0 }] = before as { count: number }[];
    const after = await http.query("select count(*) from millrace.queue");
    expect(Number(after[0]?.count)).toBe(Number(count) + words.length);
  });

  test("security 22: connections are capped, and those that are there are served on", async () => {
    const limits = { connections: 2 };
    const server = new HttpServer({ millrace: http.millrace, port: 0, adminKey, limits });
    await server.start();
    const { port, hostname } = new URL(server.url);
    const open = async () => {
      const socket = connect(Number(port), hostname);
      socket.on("error", () => {});
      await once(socket, "connect");
      return socket;
    };
    const [first, second] = [await open(), await open()];
    try {
      first.write("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
      expect(String((await once(first, "data"))[0])).toContain("200 OK");
      const third = await open();
      await once(third.resume(), "close");
      second.write("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
      expect(String((await once(second, "data"))[0])).toContain("200 OK");
    } finally {
      first.destroy();
      second.destroy();
      await server.stop();
    }
  });
}

// What is not kept, counted or compared as it was sent is refused, and said so.

import { connect } from "node:net";
import { beforeAll, describe, expect, test } from "vitest";
import { type Answer, adminKey, useHttp } from "../support/http.ts";
import { dieOnce } from "../support/http-world.ts";
import { newQueue } from "../support/instance.ts";

export function strictnessSuite(): void {
  const http = useHttp({ requestTimeoutMs: 1_000 });
  let robot = "";
  beforeAll(async () => {
    robot = await http.key("robot", "acme");
  });

  async function queue(more: object = {}): Promise<number> {
    const body = { name: newQueue(), tenant_id: "acme", ...more };
    return (await http.call("POST", "/api/queues", { body })).body.id;
  }
  const told = ({ status, body }: Answer) => [status, body?.code];
  const post = (path: string, body: unknown) => http.call("POST", path, { body });

  describe("unique references that are switched on", () => {
    const enforce = (id: number) =>
      http.call("PUT", `/api/queues/${id}`, { body: { enforce_unique_reference: true } });
    const add = (id: number, reference: string, more: object = {}) =>
      http.call("POST", "/api/queue-items", {
        key: robot,
        body: { queue_id: id, reference, ...more },
      });

    test("count what the queue holds, in whichever state it is", async () => {
      const id = await queue();
      await add(id, "done");
      const { body: item } = await http.call("GET", `/api/queue-items/next?queue_id=${id}`, {
        key: robot,
      });
      const end = { token: item.token, status: "DONE" };
      await http.call("PUT", `/api/queue-items/${item.id}`, { key: robot, body: end });
      await dieOnce(http, robot, id, { reference: "dead" });
      await add(id, "waits");
      await add(id, "later", { delay_ms: 3_600_000 });
      const gone = await add(id, "gone");
      await http.call("DELETE", `/api/queue-items/${gone.body.id}`);
      expect((await enforce(id)).body.enforce_unique_reference).toBe(true);
      for (const reference of ["done", "dead", "waits", "later"])
        expect(told(await add(id, reference))).toEqual([409, "REFERENCE_TAKEN"]);
      expect((await add(id, "gone")).status).toBe(201);
      expect((await enforce(id)).status).toBe(200);
    });

    test("are refused while a reference is used twice, with the number of such", async () => {
      const id = await queue();
      for (const reference of ["a", "a", "a", "b", "b", "c"]) await add(id, reference);
      const refused = await enforce(id);
      expect(told(refused)).toEqual([409, "REFERENCES_NOT_UNIQUE"]);
      expect(refused.body.details).toEqual({ duplicates: 2 });
      const { body } = await http.call("GET", `/api/queues/${id}`);
      expect(body.enforce_unique_reference).toBe(false);
      expect((await add(id, "c")).status).toBe(201);
    });

    test("are refused where there are more references than can be taken at once", async () => {
      const id = await queue();
      const { body } = await add(id, "first");
      await http.query(
        `insert into millrace.scheduled_job (id, due_at, created_at, queue_id, weight, max_attempts, type, tenant,
          payload, reference)
        select gen_random_uuid(), now() + interval '1 day', now(), $1, 5, 1, 'item', 'acme', 'null', 'r' || n
        from generate_series(1, 50000) n`,
        [id],
      );
      const refused = await enforce(id);
      expect([...told(refused), refused.body.details]).toEqual([
        ...[409, "REFERENCES_NOT_UNIQUE", { limit: 50_000 }],
      ]);
      await http.query("delete from millrace.scheduled_job where queue_id = $1", [id]);
      expect((await enforce(id)).status).toBe(200);
      expect(told(await add(id, "first"))).toEqual([409, "REFERENCE_TAKEN"]);
      expect(body.reference).toBe("first");
    });
  });

  describe("bodies", () => {
    const raw = (path: string, body: string | Uint8Array) =>
      fetch(`${http.baseUrl}${path}`, {
        method: "POST",
        headers: { authorization: `Bearer ${adminKey}`, "content-type": "application/json" },
        body,
      }).then(async (answer) => ({
        status: answer.status,
        body: (await answer.json()) as Answer["body"],
      }));

    test("whose numbers would lose digits are refused by path, in payloads and in results", async () => {
      const jobs = (number: string) =>
        `{"jobs":[{"type":"t"},{"type":"t","payload":{"rows":[1,{"id":${number}}]}}]}`;
      for (const number of [
        "9007199254740993",
        "-12345678901234567890",
        "3.14159265358979323846",
      ]) {
        const { status, body } = await raw("/api/jobs", jobs(number));
        expect([status, body.code]).toEqual([400, "REQUEST_INVALID"]);
        expect(body.errors).toEqual([
          expect.objectContaining({
            path: "body.jobs.1.payload.rows.1.id",
            code: "number_inexact",
          }),
        ]);
      }
      for (const number of ["1e999", "1e-999"])
        expect((await raw("/api/jobs", jobs(number))).status).toBe(400);
      for (const number of [
        "9007199254740992",
        "0.30000000000000004",
        "1e300",
        '"9007199254740993"',
      ])
        expect((await raw("/api/jobs", jobs(number))).status).toBe(201);
      const id = await queue();
      await http.call("POST", "/api/queue-items", { key: robot, body: { queue_id: id } });
      const { body: item } = await http.call("GET", `/api/queue-items/next?queue_id=${id}`, {
        key: robot,
      });
      const ended = await http.call("PUT", `/api/queue-items/${item.id}`, {
        key: robot,
        body: `{"token":"${item.token}","status":"DONE","result":{"total":9007199254740993}}`,
      });
      expect([...told(ended), ended.body.errors?.[0]?.path]).toEqual([
        ...[400, "REQUEST_INVALID", "body.result.total"],
      ]);
    });

    test("that are not UTF-8 are refused", async () => {
      const latin1 = Buffer.from('{"type":"t","payload":"caf\u00e9"}', "latin1");
      const refused = await raw("/api/jobs", latin1);
      expect([refused.status, refused.body.code]).toEqual([400, "REQUEST_INVALID"]);
      const kept = await raw("/api/jobs", '{"type":"t","payload":"caf\u00e9"}');
      expect(kept.status).toBe(201);
      const read = await http.call("GET", `/api/jobs/${kept.body.id}?include_payload=true`);
      expect(read.body.payload).toBe("caf\u00e9");
    });
  });

  test("what has died is not reprocessed into a queue that accepts nothing", async () => {
    const id = await queue();
    const [letter, other] = [await dieOnce(http, robot, id), await dieOnce(http, robot, id)];
    const activate = (is_active: boolean) =>
      http.call("PUT", `/api/queues/${id}`, { body: { is_active } });
    await activate(false);
    const dlq = "/api/jobs/admin/dlq";
    const notes = { notes: "again" };
    const refused = [409, "QUEUE_INACTIVE"];
    expect(told(await post(`${dlq}/${letter}/reprocess`, notes))).toEqual(refused);
    expect(told(await post(`/api/jobs/${letter}/retry`, notes))).toEqual(refused);
    const all = { ...notes, filter: { queue_id: id }, confirm_count: 2 };
    expect(told(await post(`${dlq}/reprocess`, all))).toEqual(refused);
    await activate(true);
    expect((await post(`${dlq}/${letter}/reprocess`, notes)).status).toBe(201);
    expect((await post(`/api/jobs/${other}/retry`, notes)).status).toBe(201);
  });

  describe("queries and names", () => {
    test("with an empty number or an unknown parameter are refused", async () => {
      const id = await queue();
      for (const path of [
        `/api/queues/${id}?confirm_count=`,
        `/api/queues/${id}?confirm_count=%20`,
        `/api/queues/${id}?confirm_count=0&confirm_count=0`,
      ])
        expect(told(await http.call("DELETE", path))).toEqual([400, "REQUEST_INVALID"]);
      for (const path of [
        `/api/queue-items/next?queue_id=${id}&wait_seconds=`,
        `/api/queues/${id}?verbose=1`,
        "/api/cluster?x",
        "/api/workers?limit=5",
      ])
        expect(told(await http.call("GET", path))).toEqual([400, "REQUEST_INVALID"]);
      expect((await http.call("GET", "/healthz?probe=1", { key: null })).status).toBe(200);
    });

    test("that are blank, and keys that are over before they begin, are refused", async () => {
      expect(told(await post("/api/queues", { name: "  " }))).toEqual([400, "REQUEST_INVALID"]);
      const key = { name: "old", role: "robot", expires_at: "2020-01-01T00:00:00Z" };
      const refused = await post("/api/keys", key);
      expect([...told(refused), refused.body.errors[0].path]).toEqual([
        ...[400, "REQUEST_INVALID", "body.expires_at"],
      ]);
    });
  });

  test("keys and webhooks are paged by cursor", async () => {
    for (let n = 0; n < 3; n++) {
      await http.key("robot", `paged-${n}`);
      await post("/api/webhooks", { url: `https://example.com/${n}` });
    }
    for (const list of ["keys", "webhooks"]) {
      const ids = (answer: Answer) => answer.body[list].map(({ id }: { id: string }) => id);
      const all = await http.call("GET", `/api/${list}`);
      expect(all.body.next_cursor).toBe(null);
      const paged: string[] = [];
      for (let cursor = ""; ; ) {
        const page = await http.call("GET", `/api/${list}?limit=2${cursor}`);
        expect(page.body[list].length).toBeLessThanOrEqual(2);
        paged.push(...ids(page));
        if (page.body.next_cursor === null) break;
        cursor = `&cursor=${page.body.next_cursor}`;
      }
      expect(paged).toEqual(ids(all));
      const wrong = await http.call("GET", `/api/${list}?cursor=xyz`);
      expect(told(wrong)).toEqual([400, "CURSOR_INVALID"]);
    }
  });

  test("what is masked says so, and what was deleted keeps its name in the audit trail", async () => {
    const id = await queue();
    const { name } = (await http.call("GET", `/api/queues/${id}`)).body;
    const { body: item } = await http.call("POST", "/api/queue-items", {
      key: robot,
      body: { queue_id: id, payload: { a: 1 } },
    });
    expect([item.payload, item.payload_masked]).toEqual([{ a: 1 }, false]);
    const masked = (await http.call("GET", `/api/queue-items/${item.id}`)).body;
    expect([masked.payload, masked.payload_masked]).toEqual([null, true]);
    await http.call("DELETE", `/api/queues/${id}?confirm_count=1`);
    const audit = await http.call("GET", `/api/audit?action=queue_delete&target=${id}`);
    expect(audit.body.entries[0].details).toEqual({ name, items: 1 });
  });

  test("a tenant's key is told why it may not see the workers", async () => {
    const key = await http.key("staff", "acme");
    const { status, body } = await http.call("GET", "/api/workers", { key });
    expect([status, body.detail]).toEqual([
      ...[403, "Workers serve all tenants; this takes a key without a tenant."],
    ]);
  });

  test("what the HTTP parser refuses is a problem with a code as well", async () => {
    const { port, hostname } = new URL(http.baseUrl);
    const say = (text: string) =>
      new Promise<string>((resolve, reject) => {
        let heard = "";
        const socket = connect(Number(port), hostname, () => socket.write(text));
        socket.on("data", (chunk) => {
          heard += chunk;
        });
        socket.on("close", () => resolve(heard));
        socket.on("error", reject);
      });
    const unended = `POST /api/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${adminKey}\r\nContent-Length: 9\r\n`;
    for (const [text, status, code] of [
      ["NONSENSE\r\n\r\n", 400, "REQUEST_INVALID"],
      [
        `GET /healthz HTTP/1.1\r\nHost: x\r\nX: ${"x".repeat(20_000)}\r\n\r\n`,
        431,
        "HEADERS_TOO_LARGE",
      ],
      [unended, 408, "REQUEST_TIMEOUT"],
    ] as const) {
      const heard = await say(text);
      const [head = "", body = ""] = heard.split("\r\n\r\n");
      expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
      expect(head).toContain("content-type: application/problem+json");
      expect(JSON.parse(body)).toMatchObject({ status, code });
    }
  });
}

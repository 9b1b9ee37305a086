import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import { type CallOptions, useHttp } from "../support/http.ts";
import { newQueue } from "../support/instance.ts";
import { until } from "../support/until.ts";
import { itemLeasesSuite } from "./item-leases.ts";

export function itemsSuite(): void {
  const http = useHttp({}, { reclaimMs: 100 });
  let robot = "";
  beforeAll(async () => {
    robot = await http.key("robot", "acme");
  });

  const call = (method: string, path: string, options: CallOptions = {}) =>
    http.call(method, `/api/queue-items${path}`, { key: robot, ...options });

  async function queue(more: object = {}): Promise<number> {
    const body = { name: newQueue(), tenant_id: "acme", ...more };
    return (await http.call("POST", "/api/queues", { body })).body.id;
  }

  const add = async (queueId: number, more: object = {}) =>
    (await call("POST", "", { body: { queue_id: queueId, ...more } })).body;
  const next = (queueId: number, more = "") => call("GET", `/next?queue_id=${queueId}${more}`);
  const settle = (item: { id: string; token: string }, body: object) =>
    call("PUT", `/${item.id}`, { body: { token: item.token, ...body } });
  describe("adding", () => {
    test("by id and by name, with any payload, a string or none", async () => {
      const id = await queue();
      const { name } = (await http.call("GET", `/api/queues/${id}`)).body;
      for (const payload of [{ a: [1] }, "text", 7, false, null, undefined]) {
        const item = await add(id, { payload });
        expect(item).toMatchObject({ queue_id: id, status: "NEW", priority: 0, retries: 0 });
        expect(item.payload).toEqual(payload ?? null);
      }
      const named = await call("POST", "/add", { body: { queue_name: name, reference: "r" } });
      expect([named.status, named.body.queue_id]).toEqual([201, id]);
      expect((await call("POST", "/add", { body: { queue_name: "nowhere" } })).status).toBe(404);
      expect((await call("POST", "", { body: { queue_id: 2_000_000_000 } })).status).toBe(404);
      expect((await call("POST", "", { body: { payload: 1 } })).status).toBe(400);
    });

    test("takes a reference once, however many ask at the same time, until its item is deleted", async () => {
      const id = await queue({ enforce_unique_reference: true });
      const asked = Array.from({ length: 20 }, () =>
        call("POST", "", { body: { queue_id: id, reference: "invoice-7" } }),
      );
      const answers = await Promise.all(asked);
      const made = answers.filter(({ status }) => status === 201);
      expect(made).toHaveLength(1);
      for (const { status, body } of answers)
        if (status !== 201) expect([status, body.code]).toEqual([409, "REFERENCE_TAKEN"]);
      const item = (await next(id)).body;
      await settle(item, { status: "DONE" });
      expect(
        (await call("POST", "", { body: { queue_id: id, reference: "invoice-7" } })).status,
      ).toBe(409);
      const manager = await http.key("manager", "acme");
      expect((await call("DELETE", `/${item.id}`, { key: manager })).status).toBe(204);
      expect((await call("GET", `/${item.id}`)).body.status).toBe("DELETED");
      expect(
        (await call("POST", "", { body: { queue_id: id, reference: "invoice-7" } })).status,
      ).toBe(201);
    });

    test("honours an idempotency key", async () => {
      const id = await queue();
      const headers = { "idempotency-key": randomUUID() };
      const body = { queue_id: id, payload: { n: 1 } };
      const first = await call("POST", "", { body, headers });
      const again = await call("POST", "", { body, headers });
      expect([first.status, again.status, again.body.id]).toEqual([201, 200, first.body.id]);
      const other = { ...body, payload: { n: 2 } };
      expect((await call("POST", "", { body: other, headers })).status).toBe(409);
    });
  });

  describe("next", () => {
    test("gives the highest priority, then the oldest, under a lease", async () => {
      const id = await queue();
      const order = [0, 5, -3, 5, 0, 10];
      for (const [n, priority] of order.entries()) await add(id, { priority, payload: n });
      const seen: number[] = [];
      for (const _ of order) {
        const { body } = await next(id, "&robot_id=r2d2&lease_seconds=30");
        seen.push(body.payload);
        expect(body).toMatchObject({
          status: "IN_PROGRESS",
          locked_by_robot_id: "r2d2",
          retries: 0,
        });
        const heldFor = Date.parse(body.lock_expires_at) - Date.parse(body.locked_at);
        expect(heldFor).toBe(30_000);
        expect(body.priority).toBe(order[body.payload]);
        const read = (await call("GET", `/${body.id}`)).body;
        expect(read).not.toHaveProperty("token");
        expect(read.locked_by_robot_id).toBe("r2d2");
      }
      expect(seen).toEqual([5, 1, 3, 0, 4, 2]);
      expect((await next(id)).status).toBe(204);
    });

    test("gives several at once to who asks for a count, by GET or POST", async () => {
      const id = await queue();
      for (let n = 0; n < 5; n++) await add(id, { payload: n });
      const first = await next(id, "&count=3");
      expect(first.body.items.map((item: { payload: number }) => item.payload)).toEqual([0, 1, 2]);
      const body = { queue_id: id, count: 10 };
      const rest = await call("POST", "/next", { body });
      expect(rest.body.items.map((item: { payload: number }) => item.payload)).toEqual([3, 4]);
      const tokens = [...first.body.items, ...rest.body.items].map(({ token }) => token);
      expect(new Set(tokens).size).toBe(5);
      expect((await call("POST", "/next", { body })).status).toBe(204);
      expect((await call("GET", "/next")).status).toBe(400);
      expect((await next(id, "&queue_name=x")).status).toBe(400);
      expect((await next(id, "&count=101")).status).toBe(400);
    });

    test("is for keys of robots: no cookie opens it", async () => {
      const id = await queue();
      await add(id);
      const headers = { cookie: `session=${robot}; millrace_session=${robot}` };
      const answer = await call("GET", `/next?queue_id=${id}`, { key: null, headers });
      expect(answer.status).toBe(401);
    });
  });

  describe("ending", () => {
    test("DONE stores the result, and saying it again says ok", async () => {
      const id = await queue();
      await add(id);
      const item = (await next(id)).body;
      const done = await settle(item, { status: "DONE", result: { total: 7 } });
      expect(done.body).toMatchObject({
        status: "DONE",
        result: { total: 7 },
        lock_expires_at: null,
      });
      expect((await settle(item, { status: "DONE", result: { total: 7 } })).status).toBe(200);
      const failed = await settle(item, { status: "FAILED" });
      expect([failed.status, failed.body.code]).toEqual([409, "ILLEGAL_TRANSITION"]);
      expect(failed.body.details).toEqual({ status: "DONE" });
    });

    test("FAILED is tried again as often as the queue says, then it is a dead letter that is told", async () => {
      const hook = { url: "https://example.com/hook", name: newQueue() };
      const webhook = await http.millrace.webhooks.create(hook);
      const id = await queue({ max_retries: 1 });
      const { id: itemId } = await add(id);
      const first = (await next(id)).body;
      const failed = { status: "FAILED", exception_type: "application" };
      const again = await settle(first, { ...failed, error_message: "timeout" });
      expect(again.body).toMatchObject({ status: "NEW", retries: 1, error_message: "timeout" });
      expect(again.body.exception_type).toBe("application");
      expect(Date.parse(again.body.updated_at)).toBeGreaterThanOrEqual(Date.parse(first.locked_at));
      const { timeline } = (await http.call("GET", `/api/jobs/${itemId}`)).body;
      expect(timeline).toMatchObject([{ outcome: "retried", exception_type: "application" }]);
      expect((await settle(first, { status: "FAILED" })).status).toBe(200);
      await http.query("update millrace.scheduled_job set due_at = now() where id = $1", [itemId]);
      await http.work([], { queues: [newQueue()], defaultHandler: () => {} });
      const second = await until("it comes back", async () => (await next(id)).body);
      expect(second).toMatchObject({ id: itemId, retries: 1 });
      const body = { status: "FAILED", error_message: "timeout", result: { page: 3 } };
      const dead = await settle(second, body);
      expect(dead.body).toMatchObject({ status: "FAILED", retries: 1, result: { page: 3 } });
      const told = await http.query(
        "select data from millrace.notification where data->>'job_id' = $1",
        [itemId],
      );
      expect(told).toHaveLength(1);
      await http.millrace.webhooks.delete(webhook.id);
    });

    test("a business exception is not tried again, also when only its words say so", async () => {
      const id = await queue({ max_retries: 5 });
      const ends = [
        { exception_type: "business", error_message: "no such customer" },
        { result: { failure_reason: "BUSINESS" } },
        { error_message: "Business rule: closed account" },
      ];
      for (const end of ends) {
        await add(id);
        const ended = await settle((await next(id)).body, { status: "FAILED", ...end });
        expect(ended.body.status).toBe("FAILED");
      }
      await add(id);
      const app = { status: "FAILED", exception_type: "application", error_message: "business" };
      expect((await settle((await next(id)).body, app)).body.status).toBe("NEW");
    });

    test("refuses unknown words, missing tokens, and words that end nothing", async () => {
      const id = await queue();
      await add(id);
      const item = (await next(id)).body;
      expect((await settle(item, { status: "FINISHED" })).status).toBe(400);
      expect((await call("PUT", `/${item.id}`, { body: { status: "DONE" } })).status).toBe(400);
      expect((await settle({ ...item, token: "x" }, { status: "DONE" })).status).toBe(400);
      const stale = { ...item, token: `${randomUUID()}/1` };
      expect((await settle(stale, { status: "DONE" })).body.code).toBe("STALE_TOKEN");
      for (const status of ["NEW", "IN_PROGRESS", "DELETED"]) {
        const { code, details } = (await settle(item, { status })).body;
        expect([code, details]).toEqual(["ILLEGAL_TRANSITION", { status: "IN_PROGRESS" }]);
      }
      for (const more of [{ error_message: "x" }, { exception_type: "business" }])
        expect((await settle(item, { status: "DONE", ...more })).status).toBe(400);
      expect(
        (await settle({ id: randomUUID(), token: item.token }, { status: "DONE" })).status,
      ).toBe(404);
      const large = { status: "DONE", result: "x".repeat(70_000) };
      expect((await settle(item, large)).body.code).toBe("RESULT_TOO_LARGE");
      expect((await settle(item, { status: "DONE", result: "\u0000" })).body.code).toBe(
        "RESULT_INVALID",
      );
      expect((await settle(item, { status: "DONE" })).status).toBe(200);
    });

    test("security 5: is for the key that holds the lease: another robot's key gets nowhere with its token", async () => {
      const id = await queue();
      await add(id);
      const item = (await next(id)).body;
      const other = await http.key("robot", "acme");
      const body = { token: item.token, status: "DONE" };
      const stolen = await call("PUT", `/${item.id}`, { key: other, body });
      expect([stolen.status, stolen.body.code]).toEqual([409, "STALE_TOKEN"]);
      const renewal = { token: item.token };
      const renewed = await call("POST", `/${item.id}/renew`, { key: other, body: renewal });
      expect([renewed.status, renewed.body.code]).toEqual([409, "STALE_TOKEN"]);
      expect((await settle(item, { status: "DONE" })).status).toBe(200);
    });
  });

  describe("leases", () => itemLeasesSuite({ http, call, queue, add, next, settle }));
}

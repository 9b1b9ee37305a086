import { expect, test } from "vitest";
import type { Answer, CallOptions, Http } from "../support/http.ts";
import { newQueue } from "../support/instance.ts";
import { until } from "../support/until.ts";

export interface ItemCalls {
  readonly http: Http;
  readonly call: (method: string, path: string, options?: CallOptions) => Promise<Answer>;
  readonly queue: (more?: object) => Promise<number>;
  readonly add: (queueId: number, more?: object) => Promise<Answer["body"]>;
  readonly next: (queueId: number, more?: string) => Promise<Answer>;
  readonly settle: (item: { id: string; token: string }, body: object) => Promise<Answer>;
}

export function itemLeasesSuite({ http, call, queue, add, next, settle }: ItemCalls): void {
  // Both times move, so that a renewal is for as long as the item was taken for.
  const expire = (id: string) =>
    http.query(
      `update millrace.claim set expires_at = now() - interval '1 s',
        created_at = created_at + (now() - interval '1 s' - expires_at) where $1 = any (job_ids)`,
      [id],
    );

  test("are renewed by their token, and tell of a cancel", async () => {
    const id = await queue();
    await add(id);
    const item = (await next(id, "&lease_seconds=5")).body;
    const renew = (body: object) =>
      call("POST", `/${item.id}/renew`, { body: { token: item.token, ...body } });
    const longer = await renew({ lease_seconds: 600 });
    expect(longer.body.cancel_requested).toBe(false);
    expect(Date.parse(longer.body.lock_expires_at)).toBeGreaterThan(
      Date.parse(item.lock_expires_at),
    );
    const manager = await http.key("manager", "acme");
    await http.call("POST", `/api/jobs/${item.id}/cancel`, { key: manager });
    expect((await renew({})).body.cancel_requested).toBe(true);
    // Giving up is what was asked for: no failure, and no dead letter.
    const failed = await settle(item, { status: "FAILED", error_message: "gave up" });
    expect(failed.body).toMatchObject({ status: "DELETED", exception_type: null });
    expect((await settle(item, { status: "FAILED" })).status).toBe(200);
    expect((await renew({})).body.details).toEqual({ status: "DELETED" });
    expect((await http.millrace.get(item.id))?.state).toBe("cancelled");
  });

  test("never end sooner for being renewed, and without a number are renewed for their own length", async () => {
    const id = await queue();
    await add(id);
    const item = (await next(id, "&lease_seconds=600")).body;
    const renew = async (body: object = {}) => {
      const answer = await call("POST", `/${item.id}/renew`, {
        body: { token: item.token, ...body },
      });
      return Date.parse(answer.body.lock_expires_at);
    };
    const first = Date.parse(item.lock_expires_at);
    expect(await renew({ lease_seconds: 5 })).toBe(first);
    const second = await renew();
    expect(second - first).toBeGreaterThan(0);
    const long = await renew({ lease_seconds: 3_000 });
    expect(long - second).toBeGreaterThan(2_000_000);
    expect(await renew()).toBe(long);
    // The long renewal is over: the lease is again what it was taken for.
    const shorten =
      "update millrace.claim set expires_at = expires_at - interval '3000 s', created_at = created_at - interval '3000 s' where $1 = any (job_ids)";
    await http.query(shorten, [item.id]);
    const [clock] = await http.query("select now() as now");
    const last = await renew();
    expect(last - Date.parse(String(clock?.now))).toBeGreaterThanOrEqual(600_000);
    expect(last).toBeLessThan(long);
  });

  test("that run out give the item back by itself, and the late robot is refused", async () => {
    const id = await queue();
    await http.work([], { queues: [newQueue()], defaultHandler: () => {} });
    const { id: itemId } = await add(id);
    const first = (await next(id, "&robot_id=one")).body;
    // Nobody else's lease suffers for it.
    const { id: neighbour } = await add(id);
    const held = (await next(id, "&robot_id=three")).body;
    expect(held.id).toBe(neighbour);
    await expire(itemId);
    const second = await until("it is served again", async () => {
      const answer = await next(id, "&robot_id=two");
      return answer.status === 200 && answer.body;
    });
    expect(second).toMatchObject({ id: itemId, locked_by_robot_id: "two", retries: 1 });
    expect((await settle(first, { status: "DONE" })).body.code).toBe("STALE_TOKEN");
    expect((await settle(second, { status: "DONE" })).status).toBe(200);
    expect((await settle(held, { status: "DONE" })).status).toBe(200);
    const { timeline } = (await http.millrace.get(itemId)) ?? { timeline: [] };
    expect(timeline.map(({ outcome, worker }) => [outcome, worker])).toEqual([
      ["lapsed", "one"],
      ["completed", "two"],
    ]);
  });

  test("that are renewed before the reclaimer looks are kept, and a deleted item frees nothing", async () => {
    const id = await queue();
    const { id: itemId } = await add(id);
    const item = (await next(id)).body;
    await expire(itemId);
    const body = { token: item.token };
    expect((await call("POST", `/${itemId}/renew`, { body })).status).toBe(200);
    expect((await settle(item, { status: "DONE" })).status).toBe(200);
    const manager = await http.key("manager", "acme");
    await add(id);
    const held = (await next(id)).body;
    const refused = await call("DELETE", `/${held.id}`, { key: manager });
    expect([refused.status, refused.body.details]).toEqual([409, { status: "IN_PROGRESS" }]);
    expect((await call("DELETE", `/${itemId}`, { key: manager })).status).toBe(204);
    expect((await call("DELETE", `/${itemId}`, { key: manager })).status).toBe(404);
  });
}

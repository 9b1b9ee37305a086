import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { ItemTaker } from "../../src/http/item-taker.ts";
import { HttpServer } from "../../src/http/server.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import type { ItemWish } from "../../src/store/item.ts";
import { send, useHttp } from "../support/http.ts";
import { newQueue } from "../support/instance.ts";
import { until } from "../support/until.ts";

const http = useHttp();

async function queue(): Promise<number> {
  const body = { name: newQueue(), tenant_id: "acme" };
  return (await http.call("POST", "/api/queues", { body })).body.id;
}

describe("a robot that waits", () => {
  test("gets an item that is added while it waits, here and through another server", async () => {
    const id = await queue();
    const key = await http.key("robot", "acme");
    const other = new HttpServer({ millrace: await http.connect(), port: 0 });
    await other.start();
    try {
      for (const baseUrl of [http.baseUrl, other.url]) {
        const path = `/api/queue-items/next?queue_id=${id}&wait_seconds=60`;
        const waiting = send(baseUrl, "GET", path, { key });
        const body = { queue_id: id, payload: baseUrl };
        await http.call("POST", "/api/queue-items", { key, body });
        expect((await waiting).body.payload).toBe(baseUrl);
      }
    } finally {
      await other.stop();
    }
  });

  test("is told that there is nothing when its time is over, and when the server stops", async () => {
    const id = await queue();
    const key = await http.key("robot", "acme");
    const path = (seconds: number) =>
      `/api/queue-items/next?queue_id=${id}&wait_seconds=${seconds}`;
    expect((await http.call("GET", path(0.2), { key })).status).toBe(204);
    const other = new HttpServer({ millrace: await http.connect(), port: 0 });
    await other.start();
    const waiting = send(other.url, "GET", path(60), { key });
    const second = send(other.url, "GET", path(60), { key });
    await send(other.url, "GET", path(0.2), { key });
    await other.stop();
    expect([(await waiting).status, (await second).status]).toEqual([204, 204]);
  });

  test("and goes away leaves its item to others, unspent", async () => {
    const id = await queue();
    const key = await http.key("robot", "acme");
    const path = `/api/queue-items/next?queue_id=${id}&wait_seconds=60`;
    const gone = new AbortController();
    const left = http.call("GET", path, { key, signal: gone.signal }).catch(() => "left");
    const stays = http.call("GET", path, { key });
    gone.abort();
    expect(await left).toBe("left");
    await http.call("POST", "/api/queue-items", { key, body: { queue_id: id } });
    const { body } = await stays;
    expect([body.status, body.retries]).toEqual(["IN_PROGRESS", 0]);
  });

  test("security 6: with a key that was revoked or has expired meanwhile gets nothing", async () => {
    const id = await queue();
    const made = { name: "robot", role: "robot", tenant_id: "acme" };
    const expires_at = new Date(Date.now() + 1_000).toISOString();
    const revoked = (await http.call("POST", "/api/keys", { body: made })).body;
    const expired = (await http.call("POST", "/api/keys", { body: { ...made, expires_at } })).body;
    const path = `/api/queue-items/next?queue_id=${id}&wait_seconds=60&count=2`;
    const started = systemClock.monotonic();
    const waiting = Promise.all(
      [revoked, expired].map(({ key }) => http.call("GET", path, { key })),
    );
    waiting.catch(() => {});
    await http.call("DELETE", `/api/keys/${revoked.id}`);
    // What a server remembers of a key is at most two seconds old.
    await until("the second has expired for all", () => systemClock.monotonic() - started > 3_200);
    const key = await http.key("robot", "acme");
    const add = { queue_id: id, payload: 1 };
    const added = (await http.call("POST", "/api/queue-items", { key, body: add })).body;
    // As long as somebody waits whose key is no good, each item costs one of them.
    const item = await until("it is there for others", async () => {
      await http.call("POST", "/api/queue-items", { key, body: add });
      const answer = await http.call("GET", `/api/queue-items/next?queue_id=${id}`, { key });
      return answer.status === 200 && answer.body;
    });
    expect([item.id, item.retries]).toEqual([added.id, 0]);
    expect((await waiting).map(({ body }) => body.code)).toEqual(Array(2).fill("UNAUTHENTICATED"));
  });

  test("on a queue that is deleted hears so at once, here and through another server", async () => {
    const id = await queue();
    const key = await http.key("robot", "acme");
    const other = new HttpServer({ millrace: await http.connect(), port: 0 });
    await other.start();
    try {
      const path = `/api/queue-items/next?queue_id=${id}&wait_seconds=60`;
      const waiting = Promise.all(
        [http.baseUrl, other.url].map((baseUrl) => send(baseUrl, "GET", path, { key })),
      );
      waiting.catch(() => {});
      // Both are known to wait by then: each of these is answered after they have asked.
      for (const baseUrl of [http.baseUrl, other.url])
        await send(baseUrl, "GET", `/api/queue-items/next?queue_id=${id}&wait_seconds=0.2`, {
          key,
        });
      await http.call("DELETE", `/api/queues/${id}?confirm_count=0`);
      const codes = (await waiting).map(({ body }) => body.code);
      expect(codes).toEqual(["QUEUE_NOT_FOUND", "QUEUE_NOT_FOUND"]);
    } finally {
      await other.stop();
    }
  });

  test("keeps the order of a key that the queue had none of when it began to wait", async () => {
    const id = await queue();
    const key = await http.key("robot", "acme");
    const next = (seconds: number) =>
      http.call("GET", `/api/queue-items/next?queue_id=${id}&wait_seconds=${seconds}`, { key });
    const first = next(60);
    const second = next(60);
    for (const waiting of [first, second]) waiting.catch(() => {});
    await next(0.2);
    for (const payload of [1, 2, 3]) {
      const body = { queue_id: id, payload, ordering_key: "account 7" };
      expect((await http.call("POST", "/api/queue-items", { key, body })).status).toBe(201);
    }
    const held = await Promise.race([first, second]);
    expect(held.body.payload).toBe(1);
    expect((await next(0)).status).toBe(204);
    const { id: item, token } = held.body;
    const done = { token, status: "DONE" };
    await http.call("PUT", `/api/queue-items/${item}`, { key, body: done });
    const both = await Promise.all([first, second]);
    expect(both.map(({ body }) => body.payload).sort()).toEqual([1, 2]);
    expect((await next(0)).status).toBe(204);
  });
});

describe("the taker", () => {
  const wish = (queueId: number, more = {}) => ({
    ...{ queueId, tenant: "acme", robot: "r", holder: randomUUID() },
    ...{ leaseMs: 60_000, count: 1, waitMs: 60_000, isAllowed: async () => true, ...more },
  });
  const never = () => new AbortController().signal;

  function counting() {
    const polls: (readonly ItemWish[])[] = [];
    const { items } = http.millrace.store.service;
    const taker = new ItemTaker({
      take: (wishes) => {
        polls.push(wishes);
        return items.take(wishes);
      },
      release: (holds) => items.release(holds, randomUUID()),
      queue: async () => ({ limited: false }),
      clock: systemClock,
    });
    return { taker, polls };
  }

  test("polls once a second for a thousand robots, and serves each item once", async () => {
    const id = await queue();
    const { taker, polls } = counting();
    const waiting = Array.from({ length: 1_000 }, () => taker.take(wish(id), never()));
    await until("all have asked once", () => taker.waiting === 1_000 && polls.length > 0);
    // Ten ticks: nothing is there, so each is one statement, whoever waits.
    const before = polls.length;
    const started = systemClock.monotonic();
    await until("ten polls", () => polls.length >= before + 10);
    const seconds = (systemClock.monotonic() - started) / 1_000;
    expect((polls.length - before) / seconds).toBeLessThanOrEqual(1.2);
    const key = await http.key("robot", "acme");
    for (let n = 0; n < 5; n++)
      await http.call("POST", "/api/queue-items", { key, body: { queue_id: id, payload: n } });
    taker.wake([id]);
    const served = await Promise.all(waiting.slice(0, 5));
    expect(served.flat().map(({ payload }) => payload)).toEqual([0, 1, 2, 3, 4]);
    expect(taker.waiting).toBe(995);
    await taker.close();
    expect((await Promise.all(waiting.slice(5))).flat()).toEqual([]);
  });

  test("serves who comes while it asks, and wakes nobody of another queue", async () => {
    const [first, second] = [await queue(), await queue()];
    const { taker, polls } = counting();
    const empty = taker.take(wish(second), never());
    await until("it has asked", () => polls.length === 1);
    const key = await http.key("robot", "acme");
    for (let n = 0; n < 3; n++)
      await http.call("POST", "/api/queue-items", { key, body: { queue_id: first } });
    const several = await Promise.all([
      taker.take(wish(first, { count: 2 }), never()),
      taker.take(wish(first, { waitMs: 0 }), never()),
      taker.take(wish(first, { waitMs: 0 }), never()),
    ]);
    expect(several.map((items) => items.length)).toEqual([2, 1, 0]);
    const asked = polls.slice(1).flat();
    expect(asked.filter(({ queueId }) => queueId === second).length).toBeLessThanOrEqual(1);
    await taker.close();
    expect(await empty).toEqual([]);
  });

  test("gives back what it took for who has gone meanwhile", async () => {
    const id = await queue();
    const key = await http.key("robot", "acme");
    const { body } = await http.call("POST", "/api/queue-items", { key, body: { queue_id: id } });
    const { items } = http.millrace.store.service;
    const gone = new AbortController();
    const taker = new ItemTaker({
      take: async (wishes) => {
        const taken = await items.take(wishes);
        gone.abort();
        return taken;
      },
      release: (holds) => items.release(holds, randomUUID()),
      queue: async () => ({ limited: false }),
      clock: systemClock,
    });
    expect(await taker.take(wish(id), gone.signal)).toEqual([]);
    await taker.close();
    expect(await items.find(body.id)).toMatchObject({ state: "ready", attempt: 0 });
  });
});

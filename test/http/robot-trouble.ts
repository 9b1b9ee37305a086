import { expect, test } from "vitest";
import type { MillraceError } from "../../src/client.ts";
import { HttpServer } from "../../src/http/server.ts";
import { adminKey, type Http } from "../support/http.ts";
import { newQueue } from "../support/instance.ts";
import { robotStage } from "../support/robot-stage.ts";
import { until } from "../support/until.ts";

export function robotTroubleSuite(http: Http): void {
  const { connect, items, robotOf } = robotStage(http);

  test("says as a failure what the service would not store, once and with the reason", async () => {
    const circle: Record<string, unknown> = {};
    circle.self = circle;
    let deep: unknown = 1;
    for (let i = 0; i < 80; i++) deep = { deep };
    const ends: Record<string, [() => unknown, RegExp]> = {
      huge: [() => "x".repeat(300_000), /^RESULT_TOO_LARGE/],
      gigantic: [() => "x".repeat(9_000_000), /^(?:BODY_TOO_LARGE|SERVICE_UNAVAILABLE)/],
      deep: [() => deep, /nested too deeply/],
      bigint: [() => ({ a: 10n }), /^RESULT_INVALID/],
      circle: [() => circle, /^RESULT_INVALID/],
      function: [() => () => 1, /^RESULT_INVALID/],
      half: [() => "\ud800", /^RESULT_INVALID/],
      nul: [() => "\u0000", /^RESULT_INVALID/],
      words: [
        () => Promise.reject(new Error("bad \u0000 byte \ud800")),
        /^bad \ufffd byte \ufffd$/,
      ],
      odd: [() => Promise.reject(Object.create(null)), /no text/],
    };
    const { queue, ids, read, client } = await items(Object.keys(ends));
    let runs = 0;
    const { robot } = robotOf(client, {
      ...{ queue, concurrency: 3 },
      run({ item }) {
        runs++;
        return ends[String(item.payload)]?.[0]();
      },
    });
    for (const [i, [name, [, reason]]] of Object.entries(ends).entries()) {
      const item = await until(`${name} has ended`, async () => {
        const found = await read(ids[i]);
        return found.status !== "NEW" && found.status !== "IN_PROGRESS" && found;
      });
      expect(item, name).toMatchObject({ status: "FAILED", exception_type: "application" });
      expect(item.error_message, name).toMatch(reason);
    }
    await robot.stop();
    expect(runs).toBe(ids.length);
  });

  test("says how an item ended when a service that was away is back", async () => {
    const serve = () => new HttpServer({ millrace: http.millrace, port: 0, adminKey });
    const first = serve();
    await first.start();
    const { queue, read } = await items([1]);
    const { url: firstUrl } = first;
    let url = firstUrl;
    let failed = 0;
    const client = connect({
      ...{ key: await http.key("robot", "acme"), tries: 1, url },
      fetch: async (address, init) => {
        try {
          return await fetch(String(address).replace(firstUrl, url), init);
        } catch (error) {
          if (init?.method === "PUT") failed++;
          throw error;
        }
      },
    });
    let runs = 0;
    const { robot, lost } = robotOf(client, {
      ...{ queue, leaseSeconds: 30 },
      async run() {
        await first.stop();
        return ++runs;
      },
    });
    await until("it could not be said twice", () => failed >= 2);
    const second = serve();
    await second.start();
    url = second.url;
    await until("it is done", async () => (await read()).status === "DONE");
    await robot.stop();
    await second.stop();
    expect([runs, (await read()).retries, lost]).toEqual([1, 0, []]);
  });

  test("renews for as long as its end cannot be said", async () => {
    await http.work([], { queues: [newQueue()], defaultHandler: () => {} });
    const { queue, read } = await items([1]);
    let renewals = 0;
    let unheard = 0;
    let asked = 0;
    const client = connect({
      ...{ key: await http.key("robot", "acme"), tries: 1 },
      fetch: async (address, init) => {
        if (unheard > 0 && renewals < 3 && String(address).endsWith("/next")) asked++;
        const isLost = init?.method === "PUT" && renewals < 3;
        if (isLost) unheard++;
        if (isLost) throw new TypeError("no route to host");
        const answer = await fetch(address, init);
        if (String(address).endsWith("/renew") && answer.ok) renewals++;
        return answer;
      },
    });
    let runs = 0;
    const { robot, lost } = robotOf(client, {
      ...{ queue, leaseSeconds: 3, concurrency: 2, waitSeconds: 0.1 },
      run: () => ++runs,
    });
    await until("it is done", async () => (await read()).status === "DONE");
    await robot.stop();
    expect([runs, (await read()).retries, lost]).toEqual([1, 0, []]);
    // Nor does it ask for more meanwhile, but for what was on its way.
    expect(asked).toBeLessThanOrEqual(1);
  });

  test("waits as Retry-After says when its key calls too often, and says it then", async () => {
    const { queue, read } = await items([1]);
    const body = { name: "slow", role: "robot", tenant_id: "acme", rate_limit: 1 };
    const key = (await http.call("POST", "/api/keys", { body })).body.key as string;
    const client = connect({ key, tries: 1 });
    let runs = 0;
    let refused = 0;
    const { robot, lost } = robotOf(client, {
      ...{ queue, leaseSeconds: 30, waitSeconds: 1 },
      async run({ item }) {
        // Uses up what the key may call.
        while ((await http.call("GET", `/api/queue-items/${item.id}`, { key })).status !== 429);
        refused++;
        return ++runs;
      },
    });
    await until("it is done", async () => (await read()).status === "DONE");
    await robot.stop();
    expect([runs, refused, lost]).toEqual([1, 1, []]);
    expect((await read()).retries).toBe(0);
  });

  test("tells of a lease that was lost, and says nothing about the item", async () => {
    await http.work([], { queues: [newQueue()], defaultHandler: () => {} });
    const { queue, ids, read } = await items([1], { max_retries: 3 });
    let away = false;
    const client = connect({
      ...{ key: await http.key("robot", "acme"), tries: 1 },
      fetch: async (...call) => {
        if (away) throw new TypeError("no route to host");
        return fetch(...call);
      },
    });
    let reason: unknown = null;
    const { robot, lost, codes } = robotOf(client, {
      ...{ queue, leaseSeconds: 1 },
      run({ signal }) {
        away = true;
        return new Promise((_, reject) => {
          signal.addEventListener("abort", () => {
            reason = signal.reason;
            reject(new Error("interrupted"));
          });
        });
      },
    });
    await until("it is told", () => lost.length > 0);
    expect(lost.map(({ id }) => id)).toEqual(ids);
    expect((reason as MillraceError).code).toBe("LEASE_LOST");
    expect(codes()).toContain("SERVICE_UNAVAILABLE");
    const item = await until("it came back", async () => {
      const found = await read();
      return found.status === "NEW" && found;
    });
    expect(item.error_message).toMatch(/died or stalled/);
    await robot.stop();
  });

  test("does not overrule who has the item by now", async () => {
    const { queue, ids, read, client } = await items([1]);
    let over = () => {};
    const { robot, lost, codes } = robotOf(client, {
      ...{ queue, leaseSeconds: 60 },
      run: () => new Promise<void>((resolve) => (over = resolve)),
    });
    await until("it is held", async () => (await read()).status === "IN_PROGRESS");
    const taken = "update millrace.claim set holder = gen_random_uuid() where $1 = any (job_ids)";
    await http.query(taken, [ids[0]]);
    over();
    await until("it is told", () => lost.length > 0);
    expect(codes()).toContain("STALE_TOKEN");
    expect((await read()).status).toBe("IN_PROGRESS");
    await robot.stop();
  });

  test("acknowledges a cancel as soon as its run has given up", async () => {
    const { queue, ids, read, client } = await items([1]);
    const { robot, codes } = robotOf(client, {
      ...{ queue, leaseSeconds: 3 },
      run: ({ signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason));
        }),
    });
    await until("it is held", async () => (await read()).status === "IN_PROGRESS");
    await http.call("POST", `/api/jobs/${ids[0]}/cancel`, { body: { reason: "not needed" } });
    await until("it is cancelled", async () => (await read()).status === "DELETED");
    await robot.stop();
    const job = (await http.call("GET", `/api/jobs/${ids[0]}`)).body;
    expect([job.state, job.closed_reason]).toEqual(["cancelled", "not needed"]);
    // By the robot itself, not because its lease ran out.
    expect(job.timeline).toMatchObject([{ outcome: "cancelled" }]);
    expect(codes()).toEqual([]);
  });
}

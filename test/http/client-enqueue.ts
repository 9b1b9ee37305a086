import { expect, test } from "vitest";
import { z } from "zod";
import { HttpClient, type HttpClientOptions } from "../../src/client.ts";
import { defineJob } from "../../src/index.ts";
import { adminKey, type Http } from "../support/http.ts";
import { newQueue, refusal } from "../support/instance.ts";

export function clientEnqueueSuite(http: Http): void {
  const connect = (more: Partial<HttpClientOptions> = {}) =>
    new HttpClient({ url: http.baseUrl, key: adminKey, ...more });

  test("carries ordering and limit keys, priorities and delays, said or found by the definition", async () => {
    const client = connect();
    const queue = newQueue();
    const found = defineJob({
      ...{ type: "found", queue, payload: z.object({ account: z.string() }) },
      orderingKey: ({ account }) => account,
      priority: () => "high",
      delayMs: () => 60_000,
    });
    const plain = defineJob({ type: "plain", queue });
    const own = defineJob({ type: "own", queue, limitKey: () => "found" });
    const [first] = await client.enqueueMany(found, [{ account: "a" }]);
    const ids = [
      first?.id,
      (await client.enqueue(found, { account: "a" }, { orderingKey: "b", delayMs: 1 })).id,
      (await client.enqueue(plain, 1, { limitKey: "c", delayMs: 60_000 })).id,
      (await client.enqueue(own, 1, { limitKey: "d", delayMs: 60_000 })).id,
    ];
    const jobs = await Promise.all(ids.map((id) => http.millrace.get(id ?? "")));
    const keys = jobs.map((job) => [job?.meta.orderingKey, job?.meta.limitKey]);
    expect(keys).toEqual([
      ["a", undefined],
      ["b", undefined],
      [undefined, "c"],
      [undefined, "d"],
    ]);
    expect(jobs[0]).toMatchObject({ state: "scheduled", weight: 0 });
    const { id: queueId } = (await http.call("GET", `/api/queues`)).body.queues.find(
      ({ name }: { name: string }) => name === queue,
    );
    const places: [string, object][] = [
      ["/api/queue-items", { queue_id: queueId }],
      ["/api/queue-items/add", { queue_name: queue }],
      ["/api/jobs", { type: "x", queue }],
    ];
    for (const [path, place] of places) {
      const ordered = { ...place, ordering_key: "e" };
      const { id } = (await http.call("POST", path, { body: ordered })).body;
      expect((await http.millrace.get(id))?.meta.orderingKey, path).toBe("e");
      const both = { ...place, ordering_key: "a", limit_key: "b" };
      expect((await http.call("POST", path, { body: both })).status, path).toBe(400);
    }
    const blank = { type: "x", queue, ordering_key: "" };
    expect((await http.call("POST", "/api/jobs", { body: { jobs: [blank] } })).status).toBe(400);
  });

  test("runs jobs of one ordering key one at a time and in order", async () => {
    const order: number[] = [];
    let running = 0;
    const job = defineJob({
      ...{ type: "ordered", queue: newQueue(), payload: z.object({ n: z.number() }) },
      orderingKey: () => "one",
      async run({ payload }) {
        expect(++running).toBe(1);
        order.push(payload.n);
        await new Promise((resolve) => setTimeout(resolve, 20));
        running--;
      },
    });
    const client = connect();
    const enqueued: { id: string }[] = [];
    for (let n = 0; n < 5; n++) enqueued.push(await client.enqueue(job, { n }));
    await http.work([job], { concurrency: 5 });
    for (const { id } of enqueued) await client.result(id);
    expect(order).toEqual([0, 1, 2, 3, 4]);
  });

  test("refuses what the client in the process refuses, with the same codes, before it is sent", async () => {
    let sent = 0;
    const client = connect({
      fetch: (...call) => {
        sent++;
        return fetch(...call);
      },
    });
    const job = defineJob({ type: "plain", queue: newQueue() });
    const named = defineJob({
      ...{ type: "greet", queue: newQueue(), payload: z.object({ name: z.string() }) },
    });
    const asked = defineJob({ type: "asked", queue: newQueue(), additionalRequired: ["order"] });
    const circle: Record<string, unknown> = {};
    circle.self = circle;
    type Wrong = [definition: typeof job, payload: unknown, options: object];
    const wrong: Wrong[] = [
      [named as unknown as typeof job, { name: 7 }, {}],
      [asked, { other: 1 }, {}],
      ...[new Map(), Number.NaN, 10n, circle, new Date(0), () => 1, { a: [undefined] }].map(
        (value): Wrong => [job, { value }, {}],
      ),
      [job, { password: "hunter2hunter2" }, {}],
      [job, 1, { keyy: "k" }],
      [job, 1, { orderingKey: "a", limitKey: "b" }],
      [job, 1, { orderingKey: "" }],
      [job, 1, { delayMs: -1 }],
      [job, 1, { maxAttempts: 0 }],
      [job, 1, { reference: "\u0000" }],
      [{} as typeof job, 1, {}],
    ];
    for (const [i, [definition, payload, options]] of wrong.entries()) {
      const there = await refusal(http.millrace.enqueue(definition, payload, options));
      const here = await refusal(client.enqueue(definition, payload, options));
      expect([here.code, here.message], `case ${i}`).toEqual([there.code, there.message]);
      const many = await refusal(client.enqueueMany(definition, [payload], options));
      expect(many.code, `case ${i}`).toBe(there.code);
    }
    const tx = { query: async () => ({ rows: [] }) };
    expect((await refusal(client.enqueue(job, 1, { tx } as object))).code).toBe("OPTION_INVALID");
    expect(sent).toBe(0);
  });

  test("leaves a governed job the idempotency key of its envelope", async () => {
    const client = connect();
    const job = defineJob({ type: "governed", queue: newQueue(), category: "documents" });
    const payload = {
      ...{ tenant_id: "acme", correlation_id: crypto.randomUUID(), idempotency_key: newQueue() },
      ...{ document_id: "d-1" },
    };
    const { id } = await client.enqueue(job, payload);
    expect(await client.enqueue(job, payload)).toEqual({ id, existing: true });
  });

  test("refuses options that make no sense when it is made", () => {
    const wrong: object[] = [
      ...[{}, { url: "nonsense" }, { url: "ftp://example.com" }, { url: 7 }],
      ...[
        { url: http.baseUrl, tries: 0 },
        { url: http.baseUrl, key: 7 },
      ],
      ...[
        { url: http.baseUrl, tenant: "" },
        { url: http.baseUrl, kee: "k" },
      ],
    ];
    for (const options of wrong)
      expect(() => new HttpClient(options as { url: string }), JSON.stringify(options)).toThrow(
        expect.objectContaining({ code: "OPTION_INVALID" }),
      );
  });
}

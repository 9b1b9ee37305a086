import { describe, expect, it } from "vitest";
import { defineJob, type EventMap } from "../../src/index.ts";
import { createGate } from "../support/gate.ts";
import { newQueue, refusal, useMillrace } from "../support/instance.ts";
import { until } from "../support/until.ts";

const instances = useMillrace({ resultLimitBytes: 1_000 });

describe("a worker", () => {
  it("claims only the types it knows, and every type when it has a default handler", async () => {
    const { millrace } = instances;
    const queue = newQueue();
    const known = defineJob({ type: "known", queue, run: () => "known" });
    const strange = defineJob({ type: "strange", queue });
    const worker = await instances.work([known]);
    const first = await millrace.enqueue(strange, 1);
    const second = await millrace.enqueue(known, 2);
    expect(await millrace.result(second.id)).toBe("known");
    expect(await millrace.get(first.id)).toMatchObject({ state: "ready", attempt: 0 });
    await worker.stop();

    await instances.work([known], { defaultHandler: ({ job }) => `default for ${job.type}` });
    expect(await millrace.result(first.id)).toBe("default for strange");
    expect(await millrace.result((await millrace.enqueue(known, 3)).id)).toBe("known");
  });

  it("with only a default handler serves the queues it is given", async () => {
    const { millrace } = instances;
    const [mine, notMine] = [newQueue(), newQueue()];
    await instances.work([], { queues: [mine], defaultHandler: ({ payload }) => payload });
    const left = await millrace.enqueue(defineJob({ type: "a", queue: notMine }), 1);
    const taken = await millrace.enqueue(defineJob({ type: "b", queue: mine }), 2);
    expect(await millrace.result(taken.id)).toBe(2);
    expect(await millrace.get(left.id)).toMatchObject({ state: "ready" });
  });

  it("runs synchronous and asynchronous handlers, with failures of both kinds", async () => {
    const { millrace } = instances;
    const queue = newQueue();
    const jobs = [
      defineJob({ type: "sync", queue, run: () => 1 }),
      defineJob({ type: "async", queue, run: async () => 2 }),
      defineJob({
        type: "sync.throw",
        queue,
        maxAttempts: 1,
        run: () => {
          throw new Error("thrown");
        },
      }),
      defineJob({
        type: "async.throw",
        queue,
        maxAttempts: 1,
        run: () => Promise.reject(new Error("rejected")),
      }),
      defineJob({
        type: "odd.throw",
        queue,
        maxAttempts: 1,
        run: () => Promise.reject(undefined),
      }),
    ];
    await instances.work(jobs);
    const ended = [];
    for (const job of jobs) {
      ended.push(await millrace.waitFor((await millrace.enqueue(job, null)).id));
    }
    expect(ended.map(({ state }) => state)).toEqual([
      "completed",
      "completed",
      "dead",
      "dead",
      "dead",
    ]);
    expect(ended.slice(0, 2).map(({ result }) => result)).toEqual([1, 2]);
    expect(ended[2]?.error?.message).toContain("thrown");
    expect(ended[3]?.error?.message).toContain("rejected");
  });

  it("waits for what only looks like a promise, as query builders do", async () => {
    const { millrace } = instances;
    class LazyQuery {}
    const settle = { value: (resolve: (n: number) => void) => resolve(7) };
    Reflect.defineProperty(LazyQuery.prototype, ["th", "en"].join(""), settle);
    const job = defineJob({ type: "lazy", queue: newQueue(), run: () => new LazyQuery() });
    await instances.work([job]);
    expect(await millrace.result((await millrace.enqueue(job, 1)).id)).toBe(7);
  });

  it("runs as many at once as its concurrency allows, and no more", async () => {
    const { millrace } = instances;
    const gate = createGate();
    let running = 0;
    let most = 0;
    const job = defineJob({
      type: "wide",
      queue: newQueue(),
      run: async ({ payload }) => {
        most = Math.max(most, ++running);
        if (payload === "slow") await gate.opened;
        running--;
      },
    });
    await instances.work([job], { concurrency: 4 });
    // Quick runs make the worker fetch ahead; it must not start ahead.
    const quick = await millrace.enqueueMany(job, Array(40).fill("quick"));
    const slow = await millrace.enqueueMany(job, Array(40).fill("slow"));
    await until("four run", () => running === 4);
    for (const { id } of quick) await millrace.waitFor(id);
    gate.open();
    for (const { id } of slow) await millrace.waitFor(id);
    expect(most).toBe(4);
  });

  it("gives the handler what it needs to know", async () => {
    const { millrace } = instances;
    const job = defineJob({
      type: "context",
      queue: newQueue(),
      run: ({ job: own, attempt, payload, signal, log }) => {
        log.info({ step: 1 }, "at work");
        const { id, type, tenant, correlationId, idempotencyKey, reference } = own;
        return {
          id,
          type,
          tenant,
          correlationId,
          idempotencyKey,
          reference,
          attempt,
          payload,
          aborted: signal.aborted,
        };
      },
    });
    await instances.work([job]);
    const options = { tenant: "t", correlationId: "c", key: job.queue, reference: "r" };
    const { id } = await millrace.enqueue(job, { p: 1 }, options);
    expect(await millrace.result(id)).toEqual({
      id,
      type: "context",
      tenant: "t",
      correlationId: "c",
      idempotencyKey: job.queue,
      reference: "r",
      attempt: 1,
      payload: { p: 1 },
      aborted: false,
    });
  });

  it("is refused with definitions that cannot work", async () => {
    const { millrace } = instances;
    const queue = newQueue();
    const without = defineJob({ type: "without", queue });
    const good = defineJob({ type: "good", queue, run: () => 1 });
    expect((await refusal(millrace.work([without]))).code).toBe("UNKNOWN_JOB_TYPE");
    expect((await refusal(millrace.work([good, good]))).code).toBe("OPTION_INVALID");
    expect((await refusal(millrace.work([]))).code).toBe("OPTION_INVALID");
    for (const options of [
      { concurrency: 0 },
      { concurrency: 1.5 },
      { drainMs: -1 },
      { queues: [""] },
    ]) {
      expect((await refusal(millrace.work([good], options))).code).toBe("OPTION_INVALID");
    }
  });
});

describe("a result", () => {
  it("is any JSON, and nothing is null", async () => {
    const { millrace } = instances;
    const job = defineJob({ type: "r", queue: newQueue(), run: ({ payload }) => payload });
    const nothing = defineJob({ type: "r.void", queue: job.queue, run: () => undefined });
    await instances.work([job, nothing]);
    for (const value of [0, false, "", [], {}, [1, { a: "ü" }], "x'\\\"y", null]) {
      const { id } = await millrace.enqueue(job, value);
      expect(await millrace.result(id)).toEqual(value);
    }
    expect(await millrace.result((await millrace.enqueue(nothing, 1)).id)).toBeNull();
  });

  it.each([
    ["too large", "RESULT_TOO_LARGE", () => "x".repeat(1_001)],
    [
      "cyclic",
      "RESULT_INVALID",
      () => {
        const value: Record<string, unknown> = {};
        value.self = value;
        return value;
      },
    ],
    ["a bigint", "RESULT_INVALID", () => 1n],
    ["a function", "RESULT_INVALID", () => () => 1],
    ["with U+0000", "RESULT_INVALID", () => "a\u0000b"],
    ["with U+0000 in a key", "RESULT_INVALID", () => ({ "a\u0000b": 1 })],
    ["with half a surrogate pair", "RESULT_INVALID", () => "a\ud800b"],
  ])("%s makes a dead letter, and the worker goes on", async (_, code, make) => {
    const { millrace } = instances;
    const job = defineJob({
      type: "r.bad",
      queue: newQueue(),
      run: ({ payload }) => (payload === "bad" ? make() : "fine"),
    });
    await instances.work([job]);
    const [bad, good] = await millrace.enqueueMany(job, ["bad", "good"]);
    expect(await millrace.result(good?.id ?? "")).toBe("fine");
    const ended = await millrace.waitFor(bad?.id ?? "");
    expect(ended).toMatchObject({ state: "dead", attempt: 1, error: { class: "non_retryable" } });
    expect(ended.error?.message).toContain(code);
  });

  it("is waited for until a deadline or a signal", async () => {
    const { millrace } = instances;
    const { id } = await millrace.enqueue(defineJob({ type: "r.never", queue: newQueue() }), 1);
    const late = await refusal(millrace.result(id, { timeoutMs: 30 }));
    expect(late.code).toBe("TIMEOUT");
    expect(late.details).toEqual({ state: "ready" });
    const stop = new AbortController();
    const waiting = millrace.result(id, { signal: stop.signal });
    stop.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
  });
});

describe("events", () => {
  it("tell a job's way", async () => {
    const { millrace } = instances;
    const job = defineJob({
      type: "events.way",
      queue: newQueue(),
      retry: () => 1,
      run: ({ attempt }) => {
        if (attempt === 1) throw new Error("once");
        return "ok";
      },
    });
    const seen: string[] = [];
    const note = (name: string) => (event: { type: string }) => {
      if (event.type === job.type) seen.push(name);
    };
    const offs = [
      millrace.events.on("job.enqueued", note("enqueued")),
      millrace.events.on("job.started", note("started")),
      millrace.events.on("job.settled", (event: EventMap["job.settled"]) =>
        note(event.outcome.kind)(event),
      ),
    ];
    await instances.work([job]);
    const { id } = await millrace.enqueue(job, 1, { key: job.queue });
    await millrace.waitFor(id);
    await until("the last event is there", () => seen.includes("completed"));
    for (const off of offs) off();
    expect(seen).toEqual(["enqueued", "started", "retried", "started", "completed"]);
  });

  it("reach a listener that throws without harm to anybody else", async () => {
    const other = await instances.connect();
    const job = defineJob({ type: "events.bad", queue: newQueue(), run: () => "ok" });
    let heard = 0;
    const fail = () => {
      heard++;
      throw new Error("a listener's own mistake");
    };
    for (const name of ["job.enqueued", "job.started", "job.settled"] as const) {
      other.events.on(name, fail);
    }
    await other.work([job]);
    const { id } = await other.enqueue(job, 1);
    expect(await other.result(id)).toBe("ok");
    expect(await other.get(id)).toMatchObject({ attempt: 1 });
    await until("all three were told", () => heard === 3);
    await other.stop();
    expect(heard).toBe(3);
  });
});

import { describe, expect, it } from "vitest";
import { defineJob, Millrace, MillraceError } from "../../src/index.ts";
import { createGate } from "../support/gate.ts";
import { newQueue, refusal, useMillrace } from "../support/instance.ts";
import { until } from "../support/until.ts";

const instances = useMillrace();

describe("connect", () => {
  const wrong: [string, Parameters<typeof Millrace.connect>[0]][] = [
    ["a database that is none", { databaseUrl: "mysql://root:hunter2@localhost/x" }],
    ["a schema name", { schema: "Not Plain" }],
    ["a lease", { leaseMs: 1 }],
    ["a renewal longer than the lease", { leaseMs: 1_000, renewMs: 2_000 }],
    ["a poll", { pollMs: 0.5 }],
    ["a pool", { poolSize: 0 }],
    ["attempts", { maxAttempts: 0 }],
    ["a log level", { logLevel: "loud" }],
    ["priorities without normal", { priorities: { high: 0 } }],
    ["a weight", { priorities: { normal: 101 } }],
    ["a category twice", { categories: [{ name: "sync" }] }],
    ["payload limits", { payloadLimits: { limitBytes: -1 } }],
    ["a text for a switch", { migrate: "false" as never }],
    ["a switch for Redis that is a text", { useRedis: "no" as never }],
    ["a folder that is no text", { dataDir: 5 as never }],
    ["a URL of Redis that is no text", { redisUrl: 5 as never }],
    ["a log that cannot be written to", { log: {} as never }],
    ["a log without child", { log: console as never }],
    ["a log that is null", { log: null as never }],
    ["a clock that does not go", { clock: {} as never }],
    ["a clock that is null", { clock: null as never }],
    ["a payload limit that is no number", { payloadLimits: { maxDepth: "9" as never } }],
  ];

  it.each(wrong)("refuses %s before it touches a database", async (_, options) => {
    const database = { databaseUrl: "postgres://nobody@127.0.0.1:1/none", ...options };
    const error = await refusal(Millrace.connect(database));
    expect(error.code).toBe("OPTION_INVALID");
    expect(error.message).not.toContain("hunter2");
  });

  it("says when there is no database", async () => {
    const error = await refusal(
      Millrace.connect({ databaseUrl: "postgres://u:hunter2@127.0.0.1:1/x", logLevel: "silent" }),
    );
    expect(error.code).toBe("DATABASE_UNAVAILABLE");
    expect(error.message).not.toContain("hunter2");
  });

  it("without migrations expects the schema to be there", async () => {
    const missing = instances.connect({ schema: "mr_missing", migrate: false });
    expect((await refusal(missing)).code).toBe("SCHEMA_OUTDATED");
    const present = await instances.connect({ migrate: false });
    expect(await present.queues()).toBeInstanceOf(Array);
  });

  it("of two instances at once on a new schema: both work", async () => {
    const schema = "mr_twice";
    const [a, b] = await Promise.all([
      instances.connect({ schema }),
      instances.connect({ schema }),
    ]);
    const { id } = await a.enqueue(defineJob({ type: "x", queue: newQueue() }), 1);
    expect(await b.get(id)).toMatchObject({ state: "ready" });
  });
});

describe("defineJob and enqueue", () => {
  it("refuse options that make no sense", async () => {
    const definitions = [
      { type: "" },
      { type: "a\nb" },
      { type: "t", queue: "q".repeat(201) },
      { type: "t", queue: " " },
      { type: "t", queue: null as never },
      { type: "t", maxAttempts: 0 },
      { type: "t", maxRuntimeMs: -1 },
      { type: "t", expiresInMs: 0.5 },
    ];
    for (const options of definitions) {
      expect(() => defineJob(options)).toThrow(MillraceError);
    }
    const { millrace } = instances;
    const job = defineJob({ type: "t", queue: newQueue() });
    const options = [
      { tenant: "" },
      { key: "" },
      { key: "x".repeat(201) },
      { reference: "a\u0000" },
      { correlationId: "a\tb" },
      { delayMs: -1 },
      { delayMs: Number.POSITIVE_INFINITY },
      { expiresInMs: 0 },
      { maxAttempts: 1_001 },
      null as never,
      5 as never,
    ];
    for (const one of options) {
      expect((await refusal(millrace.enqueue(job, 1, one))).code).toBe("OPTION_INVALID");
    }
    expect((await millrace.queues()).find(({ name }) => name === job.queue)?.counts.enqueued).toBe(
      0,
    );
  });
});

describe("several instances in one process", () => {
  it("on different schemas know nothing of each other", async () => {
    const one = await instances.connect({ schema: "mr_one" });
    const two = await instances.connect({ schema: "mr_two" });
    const queue = newQueue();
    const job = (answer: string) => defineJob({ type: "same", queue, run: () => answer });
    await one.work([job("one")]);
    const inTwo = await two.enqueue(job("two"), 1, { key: "same-key" });
    const inOne = await one.enqueue(job("one"), 2, { key: "same-key" });
    expect(await one.result(inOne.id)).toBe("one");
    expect(await two.get(inTwo.id)).toMatchObject({ state: "ready" });
    expect(await one.get(inTwo.id)).toBeNull();
    await two.work([job("two")]);
    expect(await two.result(inTwo.id)).toBe("two");
    await one.stop();
    expect(await two.result((await two.enqueue(job("two"), 3)).id)).toBe("two");
  });
});

describe("stop", () => {
  it("lets running handlers finish and claims nothing more", async () => {
    const other = await instances.connect();
    const gate = createGate();
    let started = 0;
    const job = defineJob({
      type: "drain",
      queue: newQueue(),
      run: async () => {
        started++;
        await gate.opened;
        return "finished";
      },
    });
    await other.work([job], { concurrency: 2, drainMs: 60_000 });
    const made = await other.enqueueMany(job, [1, 2, 3, 4]);
    await until("two run", () => started === 2);
    const stopped = other.stop();
    gate.open();
    await stopped;
    const { millrace } = instances;
    const states = await Promise.all(made.map(async ({ id }) => (await millrace.get(id))?.state));
    expect(states.sort()).toEqual(["completed", "completed", "ready", "ready"]);
    expect(started).toBe(2);
    const left = await instances.query(
      "select 1 from millrace.lease l join millrace.claim c on c.lease_id = l.id",
    );
    expect(left).toEqual([]);
  });

  it("lets a handler that finishes enqueue what comes next", async () => {
    const other = await instances.connect();
    const gate = createGate();
    const next = defineJob({ type: "next", queue: newQueue() });
    const job = defineJob({
      type: "last",
      queue: newQueue(),
      run: async () => {
        await gate.opened;
        return (await other.enqueue(next, "go on")).id;
      },
    });
    await other.work([job], { drainMs: 60_000 });
    const started = other.events.once("job.started");
    const { id } = await other.enqueue(job, 1);
    await started;
    const stopped = other.stop();
    gate.open();
    await stopped;
    const ended = await instances.millrace.get(id);
    expect(ended).toMatchObject({ state: "completed" });
    expect(await instances.millrace.get(String(ended?.result))).toMatchObject({ state: "ready" });
  });

  it("gives back unspent what does not finish in time, and its signal says why", async () => {
    const { millrace } = instances;
    const reasons: unknown[] = [];
    const never = createGate();
    const job = defineJob({
      type: "release",
      queue: newQueue(),
      maxAttempts: 1,
      run: async ({ signal }) => {
        signal.addEventListener("abort", () => reasons.push(signal.reason.cause));
        await never.opened;
      },
    });
    const worker = await instances.work([job], { drainMs: 20 });
    const started = millrace.events.once("job.started", ({ type }) => type === job.type);
    const ended = millrace.events.once("worker.stopped");
    const { id } = await millrace.enqueue(job, 1);
    await started;
    await worker.stop();
    expect(await ended).toEqual({ worker: worker.name, released: 1 });
    expect(reasons).toEqual(["stopping"]);
    const released = await millrace.get(id);
    expect(released).toMatchObject({ state: "ready", attempt: 0 });
    expect(released?.timeline).toMatchObject([{ outcome: "released", attempt: 1 }]);
    await instances.work([{ ...job, run: () => "second worker" }]);
    expect(await millrace.result(id)).toBe("second worker");
    never.open();
  });

  it("can be called twice, and afterwards everything says STOPPED", async () => {
    const other = await instances.connect();
    const job = defineJob({ type: "t", queue: newQueue(), run: () => 1 });
    const { id } = await other.enqueue(job, 1);
    await Promise.all([other.stop(), other.stop()]);
    await other.stop();
    const calls = [
      other.enqueue(job, 2),
      other.enqueueMany(job, [2, 3]),
      other.work([job]),
      other.get(id),
      other.result(id),
      other.cancel(id),
      other.queues(),
    ];
    const errors = await Promise.all(calls.map(refusal));
    expect(errors.map(({ code }) => code)).toEqual(calls.map(() => "STOPPED"));
  });

  it("that races with enqueue loses nothing that was acknowledged, and leaves no call hanging", async () => {
    const { millrace } = instances;
    const other = await instances.connect();
    const job = defineJob({ type: "t", queue: newQueue() });
    const calls = Array.from({ length: 50 }, (_, n) =>
      other.enqueue(job, n, n % 2 === 0 ? {} : { key: `${job.queue}-${n}` }),
    );
    const stopped = other.stop();
    const answers = await Promise.allSettled([...calls, other.enqueue(job, "late")]);
    await stopped;
    for (const answer of answers) {
      if (answer.status === "fulfilled") {
        expect(await millrace.get(answer.value.id)).toMatchObject({ state: "ready" });
      } else expect(answer.reason).toMatchObject({ code: "STOPPED" });
    }
    const stored = (await millrace.queues()).find(({ name }) => name === job.queue);
    const accepted = answers.filter(({ status }) => status === "fulfilled");
    expect(stored?.counts.enqueued ?? 0).toBe(accepted.length);
  });
});

describe("a crash", () => {
  it("is a start of the handler, and spends none of the attempts", async () => {
    const { millrace } = instances;
    const seen: [attempt: number, crashes: number][] = [];
    const job = defineJob({
      ...{ type: "crashed", queue: newQueue(), maxAttempts: 2 },
      retry: { baseMs: { retryable: 1 } },
      run: ({ attempt, job: { crashCount } }) => {
        seen.push([attempt, crashCount]);
        throw new Error("fails");
      },
    });
    const { id } = await millrace.enqueue(job, {}, { delayMs: 60_000 });
    // What the reclaimer leaves of a first run whose process died: see test/chaos/crash.test.ts.
    await instances.query(
      `update millrace.scheduled_job set attempt = 1, crash_count = 1, claim_no = 1, due_at = now()
      where id = $1`,
      [id],
    );
    await instances.work([job]);
    const ended = await millrace.waitFor(id);
    expect(ended).toMatchObject({ state: "dead", attempt: 3, crashCount: 1, maxAttempts: 2 });
    expect(seen).toEqual([
      [2, 1],
      [3, 1],
    ]);
  });
});

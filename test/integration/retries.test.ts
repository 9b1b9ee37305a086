import { describe, expect, it } from "vitest";
import {
  defineJob,
  JobFailure,
  NonRetryableError,
  RateLimitedError,
  RetryableError,
  Snooze,
} from "../../src/index.ts";
import { newQueue, refusal, useMillrace } from "../support/instance.ts";
import { until } from "../support/until.ts";

// 0.5 in the middle of the jitter: the backoff is exact.
const instances = useMillrace({ random: () => 0.5 });
const soon = { baseMs: { transient: 1, retryable: 1, rate_limited: 1 }, jitter: 0 };

/** Throws what it is told for each attempt, then succeeds. */
function failing(failures: (() => unknown)[], options: { maxAttempts?: number } = {}) {
  const attempts: number[] = [];
  const job = defineJob({
    type: "retry.me",
    queue: newQueue(),
    retry: soon,
    ...options,
    run: ({ attempt }) => {
      attempts.push(attempt);
      const failure = failures[attempts.length - 1];
      if (failure !== undefined) throw failure();
      return "done";
    },
  });
  return { job, attempts };
}

const networkError = () => Object.assign(new Error("socket hang up"), { code: "ECONNRESET" });

describe("a failed run", () => {
  it("is tried again for every class that allows it, and the timeline tells the story", async () => {
    const { millrace } = instances;
    const { job, attempts } = failing([
      () => new Error("plain"),
      networkError,
      () => new RateLimitedError("slow down"),
      () => new JobFailure("retryable", "again"),
    ]);
    await instances.work([job], { name: "worker-7" });
    const { id } = await millrace.enqueue(job, { n: 1 });
    const ended = await millrace.waitFor(id);
    expect(ended).toMatchObject({ state: "completed", result: "done", attempt: 5, error: null });
    expect(attempts).toEqual([1, 2, 3, 4, 5]);
    expect(ended.timeline.map(({ outcome }) => outcome)).toEqual([
      ...Array(4).fill("retried"),
      "completed",
    ]);
    expect(ended.timeline.map(({ errorClass }) => errorClass)).toEqual([
      "retryable",
      "transient",
      "rate_limited",
      "retryable",
      undefined,
    ]);
    expect(ended.timeline[0]).toMatchObject({ attempt: 1, worker: "worker-7" });
    expect(ended.timeline[0]?.message).toContain("plain");
    expect(ended.timeline[0]?.fingerprint).toBeTruthy();
    for (const { startedAt, endedAt } of ended.timeline) {
      expect(Date.parse(endedAt)).toBeGreaterThanOrEqual(Date.parse(startedAt) - 1_000);
    }
    const counts = (await millrace.queues()).find(({ name }) => name === job.queue)?.counts;
    expect(counts).toMatchObject({ retried: 4, completed: 1, dead: 0, depth: 0 });
  });

  it.each([
    ["retryable", () => new Error("x"), 2_000],
    ["transient", networkError, 2_000],
    ["rate_limited", () => new RateLimitedError("x"), 60_000],
    ["a platform's own wish", () => new RateLimitedError("x", { retryAfterMs: 7_000 }), 7_000],
    ["a wish beyond the cap", () => new RetryableError("x", { retryAfterMs: 9e9 }), 300_000],
  ])("waits by its class: %s", async (_, failure, expected) => {
    const { millrace } = instances;
    const job = defineJob({
      type: "retry.wait",
      queue: newQueue(),
      run: () => {
        throw failure();
      },
    });
    await instances.work([job]);
    const settled = millrace.events.once("job.settled", ({ type }) => type === job.type);
    const { id } = await millrace.enqueue(job, 1);
    expect((await settled).outcome).toMatchObject({ kind: "retried", delayMs: expected });
    const waiting = await millrace.get(id);
    expect(waiting).toMatchObject({ state: "scheduled", attempt: 1 });
    const startedAt = Date.parse(waiting?.timeline[0]?.startedAt ?? "");
    expect(Number(waiting?.dueAt)).toBeGreaterThanOrEqual(startedAt + expected);
  });

  it("is classified and spaced by the definition's own rules where it has some", async () => {
    const { millrace } = instances;
    const asked: unknown[] = [];
    const job = defineJob({
      type: "retry.own",
      queue: newQueue(),
      classify: (error) =>
        error instanceof TypeError ? { class: "transient", retryAfterMs: 1 } : undefined,
      retry: (failure, failures) => {
        asked.push([failure.class, failures]);
        return failure.retryAfterMs ?? 2;
      },
      run: ({ attempt }) => {
        if (attempt === 1) throw new TypeError("bad");
        if (attempt === 2) throw new Error("worse");
        return attempt;
      },
    });
    await instances.work([job]);
    expect(await millrace.result((await millrace.enqueue(job, 1)).id)).toBe(3);
    expect(asked).toEqual([
      ["transient", 1],
      ["retryable", 2],
    ]);
  });

  it("is retried by the default rules where its own rules fail, whatever was thrown", async () => {
    const { millrace } = instances;
    const fail = () => {
      throw new Error("broken rules");
    };
    const { proxy: revoked, revoke } = Proxy.revocable(new Error("gone"), {});
    revoke();
    const odd = [new Error("plain"), revoked, Object.defineProperty({}, "code", { get: fail })];
    const queue = newQueue();
    for (const rules of [{ classify: fail }, { retry: fail }, {}]) {
      const job = defineJob({
        type: `retry.broken.${Object.keys(rules)}`,
        queue,
        ...rules,
        run: ({ payload }) => {
          throw odd[Number(payload)];
        },
      });
      await instances.work([job]);
      for (const n of odd.keys()) {
        const { id } = await millrace.enqueue(job, n);
        await until("it waits", async () => (await millrace.get(id))?.state === "scheduled");
      }
    }
  });

  it("that only snoozes spends no attempt, and snoozes in a row are one entry", async () => {
    const { millrace } = instances;
    const { job, attempts } = failing(
      [() => new Snooze(1, "breaker open"), () => new Snooze(1, "breaker open")],
      { maxAttempts: 1 },
    );
    await instances.work([job]);
    const ended = await millrace.waitFor((await millrace.enqueue(job, 1)).id);
    expect(ended).toMatchObject({ state: "completed", attempt: 1 });
    expect(attempts).toEqual([1, 1, 1]);
    expect(ended.timeline).toHaveLength(2);
    expect(ended.timeline[0]).toMatchObject({ outcome: "snoozed", times: 2 });
    expect(ended.timeline[0]?.message).toBe("breaker open");
  });
});

describe("a dead letter", () => {
  it("is made at once by a failure that is not retryable", async () => {
    const { millrace } = instances;
    const { job, attempts } = failing([() => new NonRetryableError("no such customer")]);
    await instances.work([job]);
    const { id } = await millrace.enqueue(job, { customer_ref: "c-1" });
    const error = await refusal(millrace.result(id));
    expect(error.code).toBe("JOB_FAILED");
    expect(error.message).toContain("no such customer");
    expect(error.details).toEqual({ state: "dead", errorClass: "non_retryable" });
    expect(attempts).toEqual([1]);
    expect(await millrace.get(id)).toMatchObject({ state: "dead", attempt: 1 });
  });

  it("is made when the attempts are spent, and keeps everything", async () => {
    const { millrace } = instances;
    const { job, attempts } = failing(
      [1, 2, 3, 4].map((n) => () => new Error(`failure ${n}`)),
      { maxAttempts: 3 },
    );
    await instances.work([job]);
    const { id } = await millrace.enqueue(
      job,
      { order: ["a", { b: 1 }] },
      { tenant: "acme", correlationId: "c-9", key: job.queue, reference: "r-9", priority: "low" },
    );
    const dead = await millrace.waitFor(id);
    expect(attempts).toEqual([1, 2, 3]);
    expect(dead).toMatchObject({
      id,
      state: "dead",
      type: "retry.me",
      queue: job.queue,
      tenant: "acme",
      weight: 10,
      attempt: 3,
      maxAttempts: 3,
      crashCount: 0,
      payload: { order: ["a", { b: 1 }] },
      correlationId: "c-9",
      idempotencyKey: job.queue,
      reference: "r-9",
      error: { class: "retryable", message: expect.stringContaining("failure 3") },
      reprocessedAs: null,
    });
    expect(dead.error?.stack).toContain("failure 3");
    expect(dead.timeline.map(({ outcome }) => outcome)).toEqual(["retried", "retried", "dead"]);
    expect(dead.timeline.map(({ message }) => message)).toEqual([
      expect.stringContaining("failure 1"),
      expect.stringContaining("failure 2"),
      expect.stringContaining("failure 3"),
    ]);
    expect(Number(dead.createdAt)).toBeLessThanOrEqual(Number(dead.startedAt));
    expect(Number(dead.startedAt)).toBeLessThanOrEqual(Number(dead.finishedAt));
    expect(await millrace.deadLetters({ queue: job.queue })).toEqual([dead]);
  });

  it("can be found by queue, tenant, type, id and error fingerprint", async () => {
    const { millrace } = instances;
    const job = defineJob({
      type: "dead.find",
      queue: newQueue(),
      maxAttempts: 1,
      run: ({ payload }) => {
        throw new Error(payload === "odd" ? "an odd failure" : `order ${payload} was refused`);
      },
    });
    await instances.work([job]);
    const made = await millrace.enqueueMany(job, ["1", "2", "odd"], (_, n) => ({
      tenant: n === 0 ? "one" : "two",
    }));
    const ids = made.map(({ id }) => id);
    const [first, second, odd] = await Promise.all(ids.map((id) => millrace.waitFor(id)));
    expect(first?.error?.fingerprint).toBe(second?.error?.fingerprint);
    expect(first?.error?.fingerprint).not.toBe(odd?.error?.fingerprint);
    const found = async (filter: Parameters<typeof millrace.deadLetters>[0]) =>
      (await millrace.deadLetters({ queue: job.queue, ...filter })).map(({ id }) => id).sort();
    expect(await found({})).toEqual([...ids].sort());
    expect(await found({ tenant: "one" })).toEqual([ids[0]]);
    expect(await found({ ids: ids.slice(1, 2) })).toEqual([ids[1]]);
    expect(await found({ type: "something.else" })).toEqual([]);
    expect(await found({ fingerprint: odd?.error?.fingerprint ?? "" })).toEqual([ids[2]]);
    expect(await millrace.deadLetters({ queue: job.queue }, 2)).toHaveLength(2);
  });
});

describe("what PostgreSQL refuses to store", () => {
  const cursed = "check (type <> 'cursed') not valid";

  it("ends as a dead letter that says why, and holds up none of its batch", async () => {
    const { millrace } = instances;
    await instances.query(`alter table millrace.scheduled_job add constraint cursed ${cursed}`);
    const queue = newQueue();
    let waiting = 0;
    const run = async () => {
      waiting++;
      await until("all have begun", async () => waiting >= 3);
      throw new Error("not yet");
    };
    const types = ["blessed", "cursed", "blest"];
    const jobs = types.map((type) => defineJob({ type, queue, maxAttempts: 2, retry: soon, run }));
    const ids: string[] = [];
    for (const job of jobs) ids.push((await millrace.enqueue(job, {})).id);
    await instances.work(jobs, { concurrency: 3 });
    const ended = await Promise.all(ids.map((id) => millrace.waitFor(id)));
    expect(ended.map(({ state, attempt }) => [state, attempt])).toEqual([
      ["dead", 2],
      ["dead", 1],
      ["dead", 2],
    ]);
    expect(ended[1]?.error).toMatchObject({
      class: "non_retryable",
      message: expect.stringContaining("PostgreSQL refused to store how this run ended"),
    });
    expect(ended[0]?.error?.message).toBe("not yet");
  });

  it("does so too where the run was completed", async () => {
    const { millrace } = instances;
    await instances.query(`alter table millrace.history add constraint cursed ${cursed}`);
    const queue = newQueue();
    const types = ["blessed", "cursed", "blest"];
    const jobs = types.map((type) => defineJob({ type, queue, run: () => ({ type }) }));
    const ids: string[] = [];
    for (const job of jobs) ids.push((await millrace.enqueue(job, {})).id);
    await instances.work(jobs, { concurrency: 3 });
    const ended = await Promise.all(ids.map((id) => millrace.waitFor(id)));
    expect(ended.map(({ state }) => state)).toEqual(["completed", "dead", "completed"]);
    expect(ended[1]?.error?.message).toContain("violates check constraint");
  });
});

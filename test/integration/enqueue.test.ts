import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { defineJob } from "../../src/index.ts";
import { enqueuedIn, newQueue, refusal, useMillrace } from "../support/instance.ts";
import { until } from "../support/until.ts";

const instances = useMillrace();

/** A job type whose runs are written down in the order in which they start. */
function recorded(queue = newQueue(), type = "enqueue.note") {
  const seen: unknown[] = [];
  const job = defineJob({ type, queue, run: ({ payload }) => void seen.push(payload) });
  return { job, seen, queue };
}

describe("enqueue", () => {
  it("answers with an id under which the job is stored with everything it was given", async () => {
    const { millrace } = instances;
    const { job, queue } = recorded();
    const { id, existing } = await millrace.enqueue(
      job,
      { a: [1, "ü", { b: null }] },
      {
        tenant: "acme",
        reference: "order-1",
        correlationId: "c-1",
        key: queue,
        priority: "high",
        maxAttempts: 7,
      },
    );
    expect(existing).toBe(false);
    expect(await millrace.get(id)).toMatchObject({
      id,
      type: "enqueue.note",
      queue,
      tenant: "acme",
      state: "ready",
      weight: 0,
      attempt: 0,
      maxAttempts: 7,
      payload: { a: [1, "ü", { b: null }] },
      correlationId: "c-1",
      idempotencyKey: queue,
      reference: "order-1",
      result: null,
      error: null,
      timeline: [],
    });
    expect(await millrace.findByKey(queue, "acme")).toMatchObject({ id });
    expect(await millrace.findByKey(queue)).toBeNull();
  });

  it("fills in the tenant, the correlation id and the key when none are given", async () => {
    const { id } = await instances.millrace.enqueue(recorded().job, undefined);
    expect(await instances.millrace.get(id)).toMatchObject({
      tenant: "default",
      correlationId: id,
      idempotencyKey: id,
      payload: null,
      maxAttempts: 5,
      weight: 5,
    });
  });

  it("keeps calls that are made together apart, each with its own answer", async () => {
    const { millrace } = instances;
    const { job } = recorded();
    const calls = Array.from({ length: 50 }, (_, n) => n);
    const answers = await Promise.allSettled(
      calls.map((n) => millrace.enqueue(job, n, n === 25 ? { tenant: "" } : {})),
    );
    expect(answers.filter(({ status }) => status === "rejected")).toHaveLength(1);
    for (const [n, answer] of answers.entries()) {
      if (answer.status === "rejected") continue;
      expect(await millrace.get(answer.value.id)).toMatchObject({ payload: n });
    }
  });

  it("says nothing of a job that was never there", async () => {
    const { millrace } = instances;
    expect(await millrace.get("01890000-0000-7000-8000-000000000000")).toBeNull();
    expect((await refusal(millrace.get("no uuid"))).code).toBe("JOB_NOT_FOUND");
    const waiting = millrace.waitFor("01890000-0000-7000-8000-000000000000");
    expect((await refusal(waiting)).code).toBe("JOB_NOT_FOUND");
  });
});

describe("enqueueMany", () => {
  it("stores all of them with one answer each, in order, over several batches", async () => {
    const { millrace } = instances;
    const { job, seen, queue } = recorded();
    const payloads = Array.from({ length: 2_500 }, (_, n) => n);
    const made = await millrace.enqueueMany(job, payloads);
    expect(made).toHaveLength(2_500);
    expect(await enqueuedIn(millrace, queue)).toBe(2_500);
    expect(await millrace.get(made[2_345]?.id ?? "")).toMatchObject({ payload: 2_345 });
    await instances.work([job], { concurrency: 1 });
    await until("all have run", () => seen.length === 2_500);
    expect(seen).toEqual(payloads);
    expect(await millrace.enqueueMany(job, [])).toEqual([]);
  });

  it("takes options for each job, and keys within one call are judged beside each other", async () => {
    const { millrace } = instances;
    const { job, queue } = recorded();
    const made = await millrace.enqueueMany(job, ["a", "b", "a"], (payload, n) => ({
      key: `${queue}-${payload}`,
      priority: n === 0 ? "low" : "high",
    }));
    expect(made.map(({ existing }) => existing)).toEqual([false, false, true]);
    expect(made[2]?.id).toBe(made[0]?.id);
    expect(await millrace.get(made[0]?.id ?? "")).toMatchObject({ weight: 10 });
    expect(await millrace.get(made[1]?.id ?? "")).toMatchObject({ weight: 0 });
  });

  it("stores nothing when one payload or one key is refused", async () => {
    const { millrace } = instances;
    const { job, queue } = recorded();
    const invalid = millrace.enqueueMany(job, [1, Number.NaN, 3]);
    expect((await refusal(invalid)).code).toBe("PAYLOAD_INVALID");
    await millrace.enqueue(job, "first", { key: `${queue}-1` });
    const keyed = millrace.enqueueMany(job, ["x", "y", "z"], (_, n) => ({ key: `${queue}-${n}` }));
    expect((await refusal(keyed)).code).toBe("IDEMPOTENCY_CONFLICT");
    expect(await enqueuedIn(millrace, queue)).toBe(1);
    expect(await millrace.findByKey(`${queue}-0`)).toBeNull();
  });
});

describe("order", () => {
  it("runs the lower weight first, and in the order of acknowledgement within one", async () => {
    const { millrace } = instances;
    const { job, seen } = recorded();
    for (const n of [1, 2, 3]) {
      for (const priority of ["low", "normal", "high"]) {
        await millrace.enqueue(job, `${priority} ${n}`, { priority });
      }
    }
    await instances.work([job], { concurrency: 1 });
    await until("all have run", () => seen.length === 9);
    const expected = ["high", "normal", "low"].flatMap((p) => [1, 2, 3].map((n) => `${p} ${n}`));
    expect(seen).toEqual(expected);
  });

  it("knows the priorities of the configuration and no others", async () => {
    const other = await instances.connect({ priorities: { normal: 0, urgent: -50 } });
    const { job, queue } = recorded();
    const { id } = await other.enqueue(job, 1, { priority: "urgent" });
    expect(await other.get(id)).toMatchObject({ weight: -50, meta: { priority: "urgent" } });
    const error = await refusal(other.enqueue(job, 2, { priority: "high" }));
    expect(error.code).toBe("UNKNOWN_PRIORITY");
    expect(error.details).toEqual({ known: ["normal", "urgent"] });
    const inherited = await refusal(other.enqueue(job, 2, { priority: "toString" }));
    expect(inherited.code).toBe("UNKNOWN_PRIORITY");
    expect(await enqueuedIn(other, queue)).toBe(1);
  });
});

describe("time", () => {
  it("a delayed job is scheduled, and becomes ready by the database's clock when it is due", async () => {
    const { millrace } = instances;
    const { job, seen } = recorded();
    await instances.work([job]);
    const soon = await millrace.enqueue(job, "soon", { delayMs: 100 });
    const later = await millrace.enqueue(job, "later", { delayMs: 3_600_000 });
    const scheduled = await millrace.get(later.id);
    expect(scheduled?.state).toBe("scheduled");
    expect(Number(scheduled?.dueAt) - Number(scheduled?.createdAt)).toBe(3_600_000);
    const done = await millrace.waitFor(soon.id);
    expect(Number(done.startedAt) - Number(done.createdAt)).toBeGreaterThanOrEqual(100);
    expect(seen).toEqual(["soon"]);
    const now = await millrace.enqueue(job, "now", { delayMs: 0 });
    await millrace.waitFor(now.id);
    expect(await millrace.get(later.id)).toMatchObject({ state: "scheduled" });
  });

  it("a job that nobody started in time expires without running", async () => {
    const { millrace } = instances;
    const { job, seen } = recorded();
    const late = await millrace.enqueue(job, "late", { expiresInMs: 20 });
    const lateToo = await millrace.enqueue(job, "late too", { expiresInMs: 20, delayMs: 60_000 });
    const early = await millrace.enqueue(job, "early", { expiresInMs: 600_000 });
    await delay(60);
    await instances.work([job]);
    await millrace.waitFor(early.id);
    for (const { id } of [late, lateToo]) {
      const ended = await millrace.waitFor(id);
      expect(ended).toMatchObject({ state: "expired", attempt: 0 });
      expect((await refusal(millrace.result(id))).details).toMatchObject({ state: "expired" });
    }
    expect(seen).toEqual(["early"]);
  });
});

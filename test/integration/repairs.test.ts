import { describe, expect, it } from "vitest";
import { defineJob } from "../../src/index.ts";
import { createGate } from "../support/gate.ts";
import { newQueue, refusal, useMillrace } from "../support/instance.ts";

const instances = useMillrace();

/** Fails as long as `broken.yes` is true. */
function fragile() {
  const broken = { yes: true };
  const job = defineJob({
    type: "repair.me",
    queue: newQueue(),
    maxAttempts: 1,
    run: ({ payload, job: { meta } }) => {
      if (broken.yes) throw new Error("broken");
      return { payload, reprocessOf: meta.reprocessOf };
    },
  });
  return { job, broken };
}

async function deadLetter(options = {}) {
  const made = fragile();
  const worker = await instances.work([made.job]);
  const { id } = await instances.millrace.enqueue(made.job, { n: 1 }, options);
  expect(await instances.millrace.waitFor(id)).toMatchObject({ state: "dead" });
  return { ...made, id, worker };
}

const auditOf = (id: string) =>
  instances.query<{ actor: string; action: string; reason: string; details: unknown }>(
    "select actor, action, reason, details from millrace.audit where target = $1 order by id",
    [id],
  );

describe("reprocess", () => {
  it("runs a dead letter again as a new job that is linked to the old one, which stays", async () => {
    const { millrace } = instances;
    const key = newQueue();
    const { id, job, broken } = await deadLetter({ key, tenant: "acme", reference: "r-1" });
    broken.yes = false;
    const made = await millrace.reprocess(id, "the platform is back", "ada");
    expect(made.id).not.toBe(id);
    expect(made.idempotencyKey).toMatch(new RegExp(`^${key}_retry_\\d+$`));
    expect(await millrace.result(made.id)).toEqual({ payload: { n: 1 }, reprocessOf: id });
    expect(await millrace.get(made.id)).toMatchObject({
      tenant: "acme",
      queue: job.queue,
      reference: "r-1",
      correlationId: id,
      attempt: 1,
      meta: { reprocessOf: id },
    });
    const old = await millrace.get(id);
    expect(old).toMatchObject({ state: "dead", reprocessedAs: made.id, payload: { n: 1 } });
    expect(old?.closedReason).toBe("the platform is back");
    expect(await millrace.deadLetters({ queue: job.queue })).toEqual([]);
    expect(await auditOf(id)).toEqual([
      {
        actor: "ada",
        action: "job_dlq_reprocess_requested",
        reason: "the platform is back",
        details: null,
      },
      {
        actor: "ada",
        action: "job_dlq_reprocess_success",
        reason: "the platform is back",
        details: { new_job_id: made.id },
      },
    ]);
  });

  it("happens once, and only to what has ended badly", async () => {
    const { millrace } = instances;
    const { id, job, broken } = await deadLetter();
    broken.yes = false;
    const made = await millrace.reprocess(id, "first");
    const twice = await refusal(millrace.reprocess(id, "second"));
    expect(twice.code).toBe("ILLEGAL_TRANSITION");
    expect(twice.details).toMatchObject({ reprocessedAs: made.id });
    await millrace.result(made.id);
    expect((await refusal(millrace.reprocess(made.id, "why"))).code).toBe("ILLEGAL_TRANSITION");
    const waiting = await millrace.enqueue(job, 1, { delayMs: 600_000 });
    expect((await refusal(millrace.reprocess(waiting.id, "why"))).code).toBe("ILLEGAL_TRANSITION");
    const nobody = millrace.reprocess("01890000-0000-7000-8000-000000000000", "why");
    expect((await refusal(nobody)).code).toBe("JOB_NOT_FOUND");
    expect(await auditOf(waiting.id)).toEqual([]);
  });

  it("also takes cancelled jobs", async () => {
    const { millrace } = instances;
    const { job, broken } = fragile();
    broken.yes = false;
    const { id } = await millrace.enqueue(job, "again");
    await millrace.cancel(id, "by mistake");
    const made = await millrace.reprocess(id, "it was a mistake");
    await instances.work([job]);
    expect(await millrace.result(made.id)).toEqual({ payload: "again", reprocessOf: id });
    expect(await millrace.get(id)).toMatchObject({ state: "cancelled", reprocessedAs: made.id });
  });
});

describe("discard", () => {
  it("takes a dead letter off the list, keeps it, and is audited", async () => {
    const { millrace } = instances;
    const { id, job } = await deadLetter();
    await millrace.discard(id, "not worth it", "grace");
    expect(await millrace.get(id)).toMatchObject({
      state: "discarded",
      payload: { n: 1 },
      closedReason: "not worth it",
    });
    expect(await millrace.deadLetters({ queue: job.queue })).toEqual([]);
    expect(await auditOf(id)).toEqual([
      { actor: "grace", action: "job_dlq_discard", reason: "not worth it", details: null },
    ]);
    expect((await refusal(millrace.discard(id, "again"))).code).toBe("ILLEGAL_TRANSITION");
    expect((await refusal(millrace.reprocess(id, "now"))).code).toBe("ILLEGAL_TRANSITION");
  });

  it("is for dead letters only", async () => {
    const { millrace } = instances;
    const { id } = await millrace.enqueue(fragile().job, 1);
    expect((await refusal(millrace.discard(id, "why"))).code).toBe("ILLEGAL_TRANSITION");
    expect(await millrace.get(id)).toMatchObject({ state: "ready" });
  });
});

describe("delete", () => {
  it("works on everything that is not running, and is audited", async () => {
    const { millrace } = instances;
    const { id: dead, job, broken, worker } = await deadLetter();
    broken.yes = false;
    const { id: done } = await millrace.enqueue(job, 1);
    await millrace.result(done);
    await worker.stop();
    const { id: ready } = await millrace.enqueue(job, 1);
    const { id: scheduled } = await millrace.enqueue(job, 1, { delayMs: 600_000 });
    for (const id of [dead, done, ready, scheduled]) {
      await millrace.delete(id, "erased on request", "eve");
      expect(await millrace.get(id)).toMatchObject({ state: "deleted" });
      expect(await auditOf(id)).toMatchObject([{ actor: "eve", reason: "erased on request" }]);
      await millrace.delete(id, "again");
    }
    const counts = (await millrace.queues()).find(({ name }) => name === job.queue)?.counts;
    expect(counts?.depth).toBe(0);
  });

  it("is refused while the job runs", async () => {
    const { millrace } = instances;
    const gate = createGate();
    const job = defineJob({ type: "busy", queue: newQueue(), run: () => gate.opened });
    await instances.work([job]);
    const started = millrace.events.once("job.started", ({ type }) => type === "busy");
    const { id } = await millrace.enqueue(job, 1);
    await started;
    expect((await refusal(millrace.delete(id, "now"))).code).toBe("ILLEGAL_TRANSITION");
    gate.open();
    expect(await millrace.waitFor(id)).toMatchObject({ state: "completed" });
  });
});

describe("every repair", () => {
  it("needs a reason", async () => {
    const { millrace } = instances;
    const { id, job } = await deadLetter();
    for (const reason of ["", "  ", "x".repeat(2_001), "x\ud800y", undefined as never]) {
      expect((await refusal(millrace.reprocess(id, reason))).code).toBe("REASON_REQUIRED");
      expect((await refusal(millrace.discard(id, reason))).code).toBe("REASON_REQUIRED");
      expect((await refusal(millrace.delete(id, reason))).code).toBe("REASON_REQUIRED");
    }
    expect(await millrace.deadLetters({ queue: job.queue })).toHaveLength(1);
    expect(await auditOf(id)).toEqual([]);
  });
});

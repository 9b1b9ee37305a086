import pg from "pg";
import { describe, expect, it } from "vitest";
import { defineJob } from "../../src/index.ts";
import { enqueuedIn, newQueue, refusal, useMillrace } from "../support/instance.ts";

const instances = useMillrace({ keyWaitMs: 1_000 });
const jobIn = (queue: string, type = "named") => defineJob({ type, queue, run: () => "ran" });

describe("an idempotency key", () => {
  it("gives the same job for the same request, however the payload's keys are sorted", async () => {
    const { millrace } = instances;
    const job = jobIn(newQueue());
    const first = await millrace.enqueue(job, { a: 1, b: { c: 2, d: 3 } }, { key: job.queue });
    const again = await millrace.enqueue(job, { b: { d: 3, c: 2 }, a: 1 }, { key: job.queue });
    expect(first.existing).toBe(false);
    expect(again).toEqual({ id: first.id, existing: true });
    expect(await enqueuedIn(millrace, job.queue)).toBe(1);
  });

  it("refuses a different payload, type or queue, and tells whose the key is", async () => {
    const { millrace } = instances;
    const job = jobIn(newQueue());
    const key = job.queue;
    const { id } = await millrace.enqueue(job, { a: 1 }, { key });
    const elsewhere = newQueue();
    const others = [
      millrace.enqueue(job, { a: 2 }, { key }),
      millrace.enqueue(jobIn(job.queue, "other"), { a: 1 }, { key }),
      millrace.enqueue(jobIn(elsewhere), { a: 1 }, { key }),
    ];
    for (const error of await Promise.all(others.map(refusal))) {
      expect(error.code).toBe("IDEMPOTENCY_CONFLICT");
      expect(error.details).toEqual({ existingId: id, key });
    }
    expect(await enqueuedIn(millrace, job.queue)).toBe(1);
    expect(await enqueuedIn(millrace, elsewhere)).toBe(0);
  });

  it("belongs to its tenant", async () => {
    const { millrace } = instances;
    const job = jobIn(newQueue());
    const a = await millrace.enqueue(job, 1, { key: job.queue, tenant: "a" });
    const b = await millrace.enqueue(job, 2, { key: job.queue, tenant: "b" });
    expect(a.id).not.toBe(b.id);
  });

  it("still gives the old job after it has ended", async () => {
    const { millrace } = instances;
    const job = jobIn(newQueue());
    await instances.work([job]);
    const { id } = await millrace.enqueue(job, 1, { key: job.queue });
    await millrace.result(id);
    expect(await millrace.enqueue(job, 1, { key: job.queue })).toEqual({ id, existing: true });
    expect(await millrace.findByKey(job.queue)).toMatchObject({ id, state: "completed" });
  });

  it("makes one job of many calls at once, also from two instances", async () => {
    const { millrace } = instances;
    const other = await instances.connect();
    const job = jobIn(newQueue());
    const calls = Array.from({ length: 40 }, (_, n) =>
      (n % 2 === 0 ? millrace : other).enqueue(job, "same", { key: job.queue }),
    );
    const answers = await Promise.all(calls);
    expect(new Set(answers.map(({ id }) => id)).size).toBe(1);
    expect(answers.filter(({ existing }) => !existing)).toHaveLength(1);
    expect(await enqueuedIn(millrace, job.queue)).toBe(1);
  });
});

describe("a key that somebody's open transaction holds", () => {
  it("delays only its own call, which ends in KEY_BUSY", async () => {
    const { millrace } = instances;
    const job = jobIn(newQueue());
    const client = new pg.Client({ connectionString: instances.url });
    await client.connect();
    try {
      await client.query("begin");
      const held = await millrace.enqueue(job, "mine", { key: `${job.queue}-held`, tx: client });
      let ended = "";
      const blocked = refusal(millrace.enqueue(job, "mine", { key: `${job.queue}-held` }));
      void blocked.then(({ code }) => {
        ended = code;
      });
      const others = await Promise.all([
        millrace.enqueue(job, "plain"),
        millrace.enqueue(job, "keyed", { key: `${job.queue}-free` }),
        millrace.enqueue(job, "delayed", { delayMs: 1_000 }),
        ...Array.from({ length: 20 }, (_, n) =>
          millrace.enqueue(job, n, { key: `${job.queue}-${n}` }),
        ),
      ]);
      expect(others).toHaveLength(23);
      expect(ended).toBe("");
      expect((await blocked).code).toBe("KEY_BUSY");
      await client.query("commit");
      const again = await millrace.enqueue(job, "mine", { key: `${job.queue}-held` });
      expect(again).toEqual({ id: held.id, existing: true });
    } finally {
      await client.end();
    }
  });

  it("is waited for, and what the other transaction decides is then true", async () => {
    const patient = await instances.connect({ keyWaitMs: 60_000 });
    const job = jobIn(newQueue());
    const client = new pg.Client({ connectionString: instances.url });
    await client.connect();
    try {
      const key = (n: number) => ({ key: `${job.queue}-${n}` });
      await client.query("begin");
      const held = await patient.enqueue(job, 1, { ...key(1), tx: client });
      const waiting = patient.enqueue(job, 1, key(1));
      await patient.enqueue(job, "meanwhile", key(0));
      await client.query("commit");
      expect(await waiting).toEqual({ id: held.id, existing: true });

      await client.query("begin");
      await patient.enqueue(job, 2, { ...key(2), tx: client });
      const hoping = patient.enqueue(job, 2, key(2));
      await patient.enqueue(job, "meanwhile", key(0));
      await client.query("rollback");
      expect((await hoping).existing).toBe(false);
    } finally {
      await client.end();
    }
  });
});

describe("a reference", () => {
  it("is unique in a queue that enforces it, and free everywhere else", async () => {
    const { millrace } = instances;
    const strict = jobIn(newQueue());
    const loose = jobIn(newQueue());
    await millrace.configureQueue(strict.queue, { enforceUniqueReference: true });
    const { id } = await millrace.enqueue(strict, 1, { reference: "order-1" });
    const error = await refusal(millrace.enqueue(strict, 2, { reference: "order-1" }));
    expect(error.code).toBe("REFERENCE_TAKEN");
    expect(error.details).toEqual({ existingId: id, reference: "order-1" });
    await millrace.enqueue(strict, 3, { reference: "order-2" });
    await millrace.enqueue(loose, 4, { reference: "order-1" });
    await millrace.enqueue(loose, 5, { reference: "order-1" });
    expect(await enqueuedIn(millrace, strict.queue)).toBe(2);
    expect(await enqueuedIn(millrace, loose.queue)).toBe(2);
  });

  it("that is taken leaves the key of the refused call free", async () => {
    const { millrace } = instances;
    const job = jobIn(newQueue());
    await millrace.configureQueue(job.queue, { enforceUniqueReference: true });
    await millrace.enqueue(job, 1, { reference: "r" });
    const refused = millrace.enqueue(job, 2, { reference: "r", key: job.queue });
    expect((await refusal(refused)).code).toBe("REFERENCE_TAKEN");
    expect(await millrace.findByKey(job.queue)).toBeNull();
    const { existing } = await millrace.enqueue(job, 3, { reference: "s", key: job.queue });
    expect(existing).toBe(false);
  });

  it("is taken once by many calls at once, and by twins in one call", async () => {
    const { millrace } = instances;
    const job = jobIn(newQueue());
    await millrace.configureQueue(job.queue, { enforceUniqueReference: true });
    const calls = Array.from({ length: 20 }, (_, n) =>
      millrace.enqueue(job, n, { reference: "one" }),
    );
    const answers = await Promise.allSettled(calls);
    expect(answers.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    const twins = millrace.enqueueMany(job, ["a", "b"], { reference: "two" });
    expect((await refusal(twins)).code).toBe("REFERENCE_TAKEN");
    expect(await enqueuedIn(millrace, job.queue)).toBe(1);
  });
});

import { describe, expect, it } from "vitest";
import * as z from "zod";
import { createEnvelope, defineJob, type MillraceError } from "../../src/index.ts";
import { enqueuedIn, newQueue, refusal, useMillrace } from "../support/instance.ts";

const instances = useMillrace({
  categories: [{ name: "billing", jobTypes: ["invoice.send"], references: ["invoice_id"] }],
  payloadLimits: { warnBytes: 1_000, limitBytes: 20_000 },
});

const uuid = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff";
const codesOf = (error: MillraceError) =>
  (error.details.problems as { code: string; path: string }[]).map((p) => `${p.code} ${p.path}`);

describe("a payload with a schema", () => {
  const greeting = (queue: string) =>
    defineJob({
      type: "typed.greet",
      queue,
      payload: z.object({ name: z.string().min(1), times: z.coerce.number().default(1) }),
      run: ({ payload }) => payload.name.repeat(payload.times),
    });

  it("is stored as given, and reaches the handler as the schema makes it", async () => {
    const { millrace } = instances;
    const job = greeting(newQueue());
    await instances.work([job]);
    const { id } = await millrace.enqueue(job, { name: "ab", times: "3" });
    expect(await millrace.result(id)).toBe("ababab");
    expect(await millrace.get(id)).toMatchObject({ payload: { name: "ab", times: "3" } });
    const { id: plain } = await millrace.enqueue(job, { name: "ab" });
    expect(await millrace.result(plain)).toBe("ab");
  });

  it("is refused before it is stored, with every problem at once and no value echoed", async () => {
    const { millrace } = instances;
    const job = greeting(newQueue());
    const wrong = { name: "", times: "hunter2-many" } as never;
    const error = await refusal(millrace.enqueue(job, wrong));
    expect(error.code).toBe("PAYLOAD_INVALID");
    expect(codesOf(error)).toEqual(["schema $.name", "schema $.times"]);
    expect(JSON.stringify([error.message, error.details])).not.toContain("hunter2");
    expect(await enqueuedIn(millrace, job.queue)).toBe(0);
  });

  it("may be checked by an asynchronous schema", async () => {
    const { millrace } = instances;
    const even = z.number().refine(async (n) => n % 2 === 0, "must be even");
    const job = defineJob({ type: "typed.async", queue: newQueue(), payload: even, run: () => 1 });
    expect((await refusal(millrace.enqueue(job, 3))).code).toBe("PAYLOAD_INVALID");
    await instances.work([job]);
    expect(await millrace.result((await millrace.enqueue(job, 4)).id)).toBe(1);
  });

  it("is checked again before it runs: an old one that no longer fits is a dead letter", async () => {
    const { millrace } = instances;
    const job = greeting(newQueue());
    const old = defineJob({ type: job.type, queue: job.queue });
    const { id } = await millrace.enqueue(old, { title: "no name" });
    await instances.work([job]);
    const dead = await millrace.waitFor(id);
    expect(dead).toMatchObject({ state: "dead", attempt: 1, error: { class: "non_retryable" } });
    expect(dead.error?.message).toContain("PAYLOAD_INVALID");
  });
});

describe("payload rules", () => {
  it("name everything a governed job lacks at once, and nothing is stored", async () => {
    const { millrace } = instances;
    const job = defineJob({
      type: "invoice.send",
      queue: newQueue(),
      additionalRequired: ["due_date"],
    });
    const error = await refusal(
      millrace.enqueue(job, {
        tenant_id: " ",
        correlation_id: "not-a-uuid",
        settings: { password: "hunter2hunter2" },
      }),
    );
    expect(error.code).toBe("PAYLOAD_INVALID");
    expect(codesOf(error)).toEqual([
      "required_empty $.tenant_id",
      "correlation_id_not_uuid $.correlation_id",
      "required_missing $.idempotency_key",
      "required_missing $.invoice_id",
      "required_missing $.due_date",
      "sensitive_key $.settings.password",
    ]);
    expect(JSON.stringify([error.message, error.details])).not.toContain("hunter2");
    expect(await enqueuedIn(millrace, job.queue)).toBe(0);
  });

  it("let a governed job say itself whose it is; options may not contradict it", async () => {
    const { millrace } = instances;
    const job = defineJob({ type: "invoice.send", queue: newQueue() });
    const envelope = createEnvelope({
      tenantId: "acme",
      category: "billing",
      categories: millrace.config.categories,
      references: { invoice_id: "i-1" },
      correlationId: uuid,
      idempotencyKey: job.queue,
      newId: () => uuid,
    });
    const { id } = await millrace.enqueue(job, envelope);
    expect(await millrace.get(id)).toMatchObject({
      tenant: "acme",
      correlationId: uuid,
      idempotencyKey: job.queue,
      meta: { category: "billing" },
    });
    expect(await millrace.enqueue(job, envelope)).toEqual({ id, existing: true });
    const error = await refusal(millrace.enqueue(job, envelope, { tenant: "evil" }));
    expect(error.code).toBe("PAYLOAD_INVALID");
    const unknown = defineJob({ type: "x", queue: job.queue, category: "nothing" });
    expect((await refusal(millrace.enqueue(unknown, {}))).code).toBe("PAYLOAD_INVALID");
  });

  it("keep a listed type in its category, also one that the caller's own category lists", async () => {
    const { millrace } = instances;
    const queue = newQueue();
    const type = "invoice.send";
    const elsewhere = defineJob({ type, queue, category: "maintenance" });
    expect((await refusal(millrace.enqueue(elsewhere, {}))).code).toBe("OPTION_INVALID");
    const trigger = { type: "TIME", name: queue, cron: "@daily", payload: {} } as const;
    for (const jobType of [type, "document_scan"]) {
      const wrong = { ...trigger, jobType, jobQueue: queue, category: "maintenance" };
      expect((await refusal(millrace.triggers.create(wrong))).code).toBe("TRIGGER_INVALID");
    }
    const same = defineJob({ type, queue, category: "billing" });
    const envelope = { tenant_id: "a", correlation_id: uuid, idempotency_key: queue };
    const { id } = await millrace.enqueue(same, { ...envelope, invoice_id: "i-1" });
    expect(await millrace.get(id)).toMatchObject({ meta: { category: "billing" } });
  });

  it("take numbers for the envelope's names, as they take them for references", async () => {
    const { millrace } = instances;
    const job = defineJob({ type: "invoice.send", queue: newQueue() });
    const key = Number(String(Date.now()).slice(-9));
    const envelope = { tenant_id: 7, correlation_id: uuid, idempotency_key: key, invoice_id: 1 };
    const { id } = await millrace.enqueue(job, envelope, { tenant: "7" });
    expect(await millrace.get(id)).toMatchObject({ tenant: "7", idempotencyKey: String(key) });
  });

  it("refuse what is too large and warn of what is large", async () => {
    const { millrace } = instances;
    const job = defineJob({ type: "size", queue: newQueue() });
    const sizes: number[] = [];
    const off = millrace.events.on("job.payload_large", (event) => sizes.push(event.sizeBytes));
    const ofSize = (bytes: number) =>
      Array.from({ length: Math.floor(bytes / 11) }, () => "word word");
    const error = await refusal(millrace.enqueue(job, ofSize(40_000)));
    expect(error.code).toBe("PAYLOAD_TOO_LARGE");
    expect(await enqueuedIn(millrace, job.queue)).toBe(0);
    await millrace.enqueue(job, ofSize(5_000));
    await millrace.enqueue(job, ofSize(500));
    off();
    expect(sizes).toHaveLength(1);
    expect(await enqueuedIn(millrace, job.queue)).toBe(2);
  });
});

describe("a payload that JSON or PostgreSQL cannot hold", () => {
  const cyclic: Record<string, unknown> = {};
  cyclic.self = cyclic;
  const nested = (depth: number): unknown => {
    let value: unknown = 1;
    for (let n = 0; n < depth; n++) value = [value];
    return value;
  };
  const hostile: [string, unknown][] = [
    ["U+0000 in a text", { a: "x\u0000y" }],
    ["U+0000 in a key", { "a\u0000": 1 }],
    ["half a surrogate pair", { a: "x\ud800y" }],
    ["half a surrogate pair in a key", { "\udc00": 1 }],
    ["1e400", JSON.parse('{"n":[1e400]}')],
    ["NaN", { n: Number.NaN }],
    ["__proto__", JSON.parse('{"a":{"__proto__":{"admin":true}}}')],
    ["nesting 100,000 deep", nested(100_000)],
    [
      "nesting 100,000 deep in objects",
      { a: JSON.parse(`${'{"a":'.repeat(1e5)}1${"}".repeat(1e5)}`) },
    ],
    ["itself", cyclic],
    ["a bigint", { n: 1n }],
    ["a function", { f: () => 1 }],
    ["a date", { at: new Date() }],
    ["a map", new Map([["a", 1]])],
  ];

  it.each(hostile)(
    "%s is refused, nothing is stored and the next job works",
    async (_, payload) => {
      const { millrace } = instances;
      const job = defineJob({ type: "hostile", queue: newQueue(), run: () => "fine" });
      const beside = millrace.enqueue(job, "beside");
      expect((await refusal(millrace.enqueue(job, payload))).code).toBe("PAYLOAD_INVALID");
      const keyed = millrace.enqueue(job, payload, { key: `${job.queue}-k` });
      expect((await refusal(keyed)).code).toBe("PAYLOAD_INVALID");
      const many = millrace.enqueueMany(job, ["ok", payload]);
      expect((await refusal(many)).code).toBe("PAYLOAD_INVALID");
      await beside;
      expect(await enqueuedIn(millrace, job.queue)).toBe(1);
      await instances.work([job]);
      expect(await millrace.result((await millrace.enqueue(job, "next")).id)).toBe("fine");
    },
  );

  it("is refused also when a recursive schema would drown in it", async () => {
    const { millrace } = instances;
    const job = defineJob({ type: "hostile", queue: newQueue(), payload: z.json() });
    const error = await refusal(millrace.enqueue(job, nested(100_000) as never));
    expect(error.code).toBe("PAYLOAD_INVALID");
  });
});

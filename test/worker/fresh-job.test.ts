import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { FreshJobs, NewJob } from "../../src/store/store.ts";
import { jobText, jobTexts, parseFresh } from "../../src/worker/fresh-job.ts";

const job = (payload: unknown): NewJob => ({
  ...{ id: randomUUID(), type: "work", queueId: 7, tenant: "acme", weight: 5, maxAttempts: 4 },
  payload: JSON.stringify(payload),
});
const jobs = (count: number, payload: unknown) => Array.from({ length: count }, () => job(payload));
const bytes = (texts: readonly string[] | null) =>
  (texts ?? []).map((text) => Buffer.byteLength(text));

const tidsOf = (count: number) => Array.from({ length: count }, (_, n) => `(0,${n + 1})`).join(";");
const parse = (texts: readonly string[], fresh: Partial<FreshJobs> = {}) =>
  parseFresh({
    ...{ claimId: "c", leaseId: "l", jobId: null },
    fresh: { texts, tids: tidsOf(3), at: 1_700_000_000.5, seq: 41, ...fresh },
  });

describe("jobs as texts of notices", () => {
  it("come back as they were, in their order and with their places", () => {
    const sent = [job({ a: "x\ny \u001e" }), job(null), job([1, "ü"])];
    const texts = jobTexts(sent) ?? [];
    expect(texts.join("")).not.toContain("\x1e");
    const at = new Date(1_700_000_000_500);
    expect(parse(texts)).toEqual(
      sent.map(({ id, payload }, n) => ({
        ...{ id, correlationId: id, idempotencyKey: id, payload: JSON.parse(payload) },
        ...{ type: "work", queueId: 7, tenant: "acme", weight: 5, maxAttempts: 4, attempt: 1 },
        ...{ token: { claimId: "c", claimNo: 1 }, place: { tid: `(0,${n + 1})`, seq: 41 + n } },
        ...{ crashCount: 0, maxRuntimeMs: null, reference: null, meta: {}, timeline: [] },
        ...{ createdAt: at, readyAt: at, startedAt: at },
      })),
    );
  });

  it("have as many as fit, whatever the letters", () => {
    for (const payload of ["", "x".repeat(380), "ü".repeat(300), "漢".repeat(390)]) {
      const sent = jobs(1_000, payload);
      const texts = jobTexts(sent);
      expect(Math.max(...bytes(texts))).toBeLessThanOrEqual(7_700);
      const back = parse(texts ?? [], { tids: tidsOf(1_000) });
      expect(back?.map(({ id }) => id)).toEqual(sent.map(({ id }) => id));
    }
  });

  it("are none when they are long, on average or one of them", () => {
    expect(jobTexts(jobs(50, "x".repeat(500)))).toBeNull();
    expect(jobTexts([...jobs(50, "x"), job("x".repeat(7_500)), ...jobs(50, "x")])).toBeNull();
    expect(jobTexts([...jobs(50, "x"), job("漢".repeat(3_000))])).toBeNull();
    expect(jobText(job("x".repeat(7_500)))).toEqual([]);
    expect(jobTexts([])).toBeNull();
  });

  it("are not believed when something is missing", () => {
    const texts = jobTexts(jobs(3, "x".repeat(380))) ?? [];
    expect(parse(texts)).toHaveLength(3);
    expect(parse(texts, { tids: tidsOf(2) })).toBeNull();
    expect(parse([])).toBeNull();
    expect(parse(["no job"])).toBeNull();
    expect(parse([(texts[0] ?? "").replace(/[0-9a-f]{36}/, "")])).not.toBeNull();
    expect(parse([(texts[0] ?? "").replace(/\n[0-9a-f-]{36}/, "\n")])).toBeNull();
  });
});

import { describe, expect, it } from "vitest";
import { uuidv7 } from "../../src/runtime/uuid.ts";
import type { FreshJobs, HandedClaim, NewJob } from "../../src/store/store.ts";
import { namedIn, parseFresh, withPayloads } from "../../src/worker/fresh-job.ts";
import { jobText, jobTexts } from "../../src/worker/job-texts.ts";

const job = (payload: unknown): NewJob => ({
  ...{ id: uuidv7(), type: "work", queueId: 7, tenant: "acme", weight: 5, maxAttempts: 4 },
  payload: JSON.stringify(payload),
});
const jobs = (count: number, payload: unknown) => Array.from({ length: count }, () => job(payload));
const bytes = (texts: readonly string[] | null) =>
  (texts ?? []).map((text) => Buffer.byteLength(text));

const tidsOf = (count: number) => Array.from({ length: count }, (_, n) => `(0,${n + 1})`).join(";");
const handed = (texts: readonly string[], fresh: Partial<FreshJobs> = {}): HandedClaim => ({
  ...{ claimId: "c", leaseId: "l", jobId: null },
  fresh: { texts, tids: tidsOf(3), at: 1_700_000_000.5, seq: 41, ...fresh },
});
const parse = (texts: readonly string[], fresh: Partial<FreshJobs> = {}) =>
  parseFresh(handed(texts, fresh));
const at = new Date(1_700_000_000_500);
const asClaimed = ({ id, payload }: NewJob, n: number) => ({
  ...{ id, correlationId: id, idempotencyKey: id, payload: JSON.parse(payload) },
  ...{ type: "work", queueId: 7, tenant: "acme", weight: 5, maxAttempts: 4, attempt: 1 },
  ...{ token: { claimId: "c", claimNo: 1 }, place: { tid: `(0,${n + 1})`, seq: 41 + n } },
  ...{ crashCount: 0, maxRuntimeMs: null, reference: null, meta: {}, timeline: [] },
  ...{ createdAt: at, readyAt: at, startedAt: at },
});

describe("jobs as texts of notices", () => {
  it("come back as they were, in their order and with their places", () => {
    const sent = [job({ a: "x\ny \u001e" }), job(null), job([1, "ü"])];
    const texts = jobTexts(sent) ?? [];
    expect(texts.join("")).not.toContain("\x1e");
    expect(parse(texts)).toMatchObject(sent.map(asClaimed));
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

  it("are none when one of them is long, or there are none", () => {
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

describe("long jobs", () => {
  const long = (count: number) => jobs(count, "x".repeat(500));
  const textsOf = (sent: readonly NewJob[]) => sent.map(({ payload }) => payload);

  it("are told by their ids alone, as many as fit", () => {
    const sent = long(1_000);
    const texts = jobTexts(sent) ?? [];
    expect(texts.length).toBeGreaterThan(1);
    expect(Math.max(...bytes(texts))).toBeLessThanOrEqual(7_700);
    expect(texts.join("")).not.toContain("xxx");
    expect(parse(texts, { tids: tidsOf(1_000) })).toBeNull();
    expect(namedIn(handed(texts))).toEqual(sent.map(({ id }) => id));
  });

  it("are whole with the payloads that were read", () => {
    const sent = long(3);
    const claim = handed(jobTexts(sent) ?? []);
    const ids = namedIn(claim) ?? [];
    expect(withPayloads(claim, ids, textsOf(sent))).toMatchObject(sent.map(asClaimed));
    expect(withPayloads(claim, ids, textsOf(sent.slice(1)))).toBeNull();
    const elsewhere = handed(jobTexts(sent) ?? [], { tids: tidsOf(2) });
    expect(withPayloads(elsewhere, ids, textsOf(sent))).toBeNull();
    const garbled = handed([`garbled\n${ids.join("")}`]);
    expect(withPayloads(garbled, ids, textsOf(sent))).toBeNull();
  });

  it("are not told when their ids are not in order, or there is too much to read at once", () => {
    expect(jobTexts(long(50).reverse())).toBeNull();
    expect(jobTexts(jobs(10, "x".repeat(199_000)))).toHaveLength(1);
    expect(jobTexts(jobs(11, "x".repeat(199_000)))).toBeNull();
  });

  it("are not looked for when it is not clear which they are", () => {
    const sent = long(3);
    const [text = ""] = jobTexts(sent) ?? [];
    const [common, ids = ""] = text.split("\n");
    expect(namedIn(handed([text]))).toHaveLength(3);
    for (const other of [
      ...["", text.slice(0, -1), `${text}\n[]`, `${common}\n`, text.replace(ids, "x".repeat(108))],
      `${common}\n${ids.slice(36)}${ids.slice(0, 36)}`,
    ])
      expect(namedIn(handed([other]))).toBeNull();
    expect(namedIn({ ...handed([text]), jobId: "j" })).toBeNull();
    expect(namedIn({ claimId: "c", leaseId: "l", jobId: null })).toBeNull();
  });
});

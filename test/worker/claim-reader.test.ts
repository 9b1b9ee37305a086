import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { Events } from "../../src/runtime/events.ts";
import { uuidv7 } from "../../src/runtime/uuid.ts";
import type { HandedClaim, WorkerSession } from "../../src/store/store.ts";
import { ClaimReader } from "../../src/worker/claim-reader.ts";
import { Fetcher } from "../../src/worker/fetcher.ts";
import { type HeldJob, HeldJobs } from "../../src/worker/held-jobs.ts";

const leaseId = randomUUID();

/** A worker that finds these payloads, and notes what it asks for. */
function stage(found: readonly string[]) {
  const asked: string[] = [];
  const delivered: HeldJob[] = [];
  const session = {
    payloads: async (ids: readonly string[]) => {
      asked.push(`payloads of ${ids.length}`);
      return [...found];
    },
    handed: async () => {
      asked.push("the claim");
      return { jobs: [] };
    },
  } as Partial<WorkerSession> as WorkerSession;
  const fetcher = new Fetcher({
    ...{ directEveryMs: null, types: null },
    monotonic: () => 0,
    newClaimId: () => randomUUID(),
  });
  const reader = new ClaimReader({
    ...{ session, fetcher, held: new HeldJobs(), worker: "w", events: new Events() },
    leaseId: () => leaseId,
    deliver: () => {},
    deliverHanded: (jobs) => {
      delivered.push(...jobs);
      return true;
    },
    start: () => {},
    settled: () => {},
  });
  return { reader, asked, delivered };
}

const common = JSON.stringify({ type: "work", tenant: "t", queueId: 1, weight: 5, maxAttempts: 3 });
const named = (ids: readonly string[], tids: string): HandedClaim => ({
  ...{ claimId: randomUUID(), leaseId, jobId: null },
  fresh: { texts: [`${common}\n${ids.join("")}`], tids, at: 60, seq: 40 },
});

test("of jobs whose ids were told only the payloads are read", async () => {
  const { reader, asked, delivered } = stage([`{"n":1}`, `{"n":2}`]);
  const ids = [uuidv7(), uuidv7()];
  reader.hand(named(ids, "(0,1);(0,2)"));
  await reader.read();
  expect(asked).toEqual(["payloads of 2"]);
  expect(delivered.map(({ job }) => [job.id, job.payload])).toEqual([
    [ids[0], { n: 1 }],
    [ids[1], { n: 2 }],
  ]);
  expect(reader.pending).toBe(false);
});

test("the whole claim is read if payloads are missing, or its jobs were not told", async () => {
  const { reader, asked, delivered } = stage([`{"n":1}`]);
  reader.hand(named([uuidv7(), uuidv7()], "(0,1);(0,2)"));
  reader.hand({ claimId: randomUUID(), leaseId, jobId: null });
  await reader.read();
  expect(asked).toEqual(["payloads of 2", "the claim", "the claim"]);
  expect(delivered).toEqual([]);
});

import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { Events } from "../../src/runtime/events.ts";
import type { HandedClaim } from "../../src/store/store.ts";
import { Fetcher } from "../../src/worker/fetcher.ts";
import { claimedLater } from "../../src/worker/fresh-job.ts";
import { Handovers } from "../../src/worker/handovers.ts";
import { type HeldJob, HeldJobs } from "../../src/worker/held-jobs.ts";
import { Registry } from "../../src/worker/registry.ts";
import { createGate } from "../support/gate.ts";

/** A worker that nothing is asked of but what it does with claims it hears of. */
function stage(now = () => 0) {
  const held = new HeldJobs();
  const toRead: string[] = [];
  const told: boolean[] = [];
  const delivered: HeldJob[] = [];
  const ended: [HeldJob, "stored" | "lost"][] = [];
  const lease = {
    leaseId: randomUUID(),
    renewing: null as Promise<void> | null,
    releasedBefore: 50,
  };
  const fetcher = new Fetcher({
    ...{ directEveryMs: null, types: null },
    monotonic: () => now(),
    newClaimId: () => randomUUID(),
  });
  const handovers = new Handovers({
    ...{ worker: "w", listener: null, fetcher, held, lease, leaseMs: 15_000, renewMs: 5_000 },
    ...{ clock: systemClock, events: new Events() },
    session: { offer: async () => {} },
    store: { find: async () => [] },
    registry: new Registry([defineJob({ type: "work", run: () => 1 })]),
    room: () => 10,
    isFull: () => false,
    unasked: () => 10,
    handed: () => ({ atOnce: 10, most: 20 }),
    runMs: () => 1,
    isIdle: () => true,
    deliver: (jobs) => void delivered.push(...jobs),
    release: () => {},
    delivered: () => {},
    start: () => told.push(true),
    stored: (one) => void ended.push([one, "stored"]),
    lost: (one) => void ended.push([one, "lost"]),
    hand: ({ claimId, fresh }) => {
      toRead.push(claimId);
      told.push(fresh !== undefined);
    },
  });
  const claim = (at?: number): HandedClaim => {
    const ids = { claimId: randomUUID(), leaseId: lease.leaseId, jobId: randomUUID() };
    const text = `${JSON.stringify({ id: ids.jobId, type: "work", queueId: 1, weight: 5 })}\n1`;
    return at === undefined ? ids : { ...ids, fresh: { texts: [text], tids: null, at, seq: 1 } };
  };
  const several = (...texts: string[]): HandedClaim => ({
    ...{ claimId: randomUUID(), leaseId: lease.leaseId, jobId: null },
    fresh: { texts, tids: "(0,1);(0,2)", at: 60, seq: 40 },
  });
  return { handovers, held, lease, toRead, told, delivered, ended, claim, several, fetcher };
}

test("a claim is registered as soon as it is heard of, and read after the renewal under way", async () => {
  const { handovers, held, lease, toRead, delivered, claim } = stage();
  const renewal = createGate();
  lease.renewing = renewal.opened;
  const [long, short] = [claim(), claim(60)];
  handovers.heard(long);
  handovers.heard(short);
  expect(held.claims).toEqual([long.claimId, short.claimId]);
  await new Promise(setImmediate);
  expect([toRead, delivered]).toEqual([[], []]);
  renewal.open();
  await new Promise(setImmediate);
  expect(toRead).toEqual([long.claimId]);
  expect(delivered.map(({ job }) => job.token.claimId)).toEqual([short.claimId]);
});

test("a job is believed only if no renewal can have given it back, and read otherwise", async () => {
  const { handovers, lease, toRead, told, delivered, claim } = stage();
  const [old, young, unknown] = [claim(49.9), claim(50), claim(60)];
  handovers.heard(old);
  handovers.heard(young);
  expect(toRead).toEqual([old.claimId]);
  expect(delivered.map(({ job }) => job.id)).toEqual([young.jobId]);
  lease.releasedBefore = Number.POSITIVE_INFINITY;
  lease.renewing = Promise.reject(new Error("no answer"));
  handovers.heard(unknown);
  await new Promise(setImmediate);
  expect(toRead).toEqual([old.claimId, unknown.claimId]);
  // Nor is it believed which jobs they are.
  expect(told).toEqual([false, false]);
});

test("what is for another lease, or held already, is left alone", async () => {
  const { handovers, held, lease, toRead, delivered, claim } = stage();
  handovers.heard({ ...claim(60), leaseId: randomUUID() });
  expect(held.claims).toEqual([]);
  const twice = claim(60);
  handovers.heard(twice);
  handovers.heard(twice);
  expect(delivered).toHaveLength(1);
  // Whoever reads it finds that it belongs to others.
  const lost = claim(60);
  lease.renewing = Promise.resolve();
  handovers.heard(lost);
  lease.leaseId = randomUUID();
  await lease.renewing;
  expect(delivered).toHaveLength(1);
  expect(toRead).toEqual([lost.claimId]);
});

test("several jobs come out of their notices, and say how far their queue is claimed", () => {
  let now = 0;
  const { handovers, fetcher, held, toRead, delivered, several } = stage(() => now);
  fetcher.serve([1]);
  const common = JSON.stringify({ type: "work", queueId: 1, weight: 5, tenant: "t" });
  const ids = [randomUUID(), randomUUID()];
  const one = several(`${common}\n${ids[0]}\n[{"n":1}]`, `${common}\n${ids[1]}\n[{"n":2}]`);
  handovers.heard(one);
  const placeOf = ({ job }: HeldJob) => [job.place?.tid, job.place?.seq];
  expect(delivered.map((one) => [one.job.id, one.job.payload, ...placeOf(one)])).toEqual([
    [ids[0], { n: 1 }, "(0,1)", 40],
    [ids[1], { n: 2 }, "(0,2)", 41],
  ]);
  expect([toRead, held.claims]).toEqual([[], [one.claimId]]);
  now += 1_000;
  expect(fetcher.hints()).toEqual([{ queueId: 1, weight: 5, afterSeq: 41 }]);
});

test("what cannot be made out is read", () => {
  const { handovers, toRead, delivered, several } = stage();
  const torn = several("no jobs");
  handovers.heard(torn);
  expect([toRead, delivered]).toEqual([[torn.claimId], []]);
});

test("jobs of which only the ids are told are read by them", () => {
  const { handovers, toRead, told, delivered, several } = stage();
  const named = several(`{"type":"work","queueId":1}\n${randomUUID()}`);
  handovers.heard(named);
  expect([toRead, told, delivered]).toEqual([[named.claimId], [true], []]);
});

test.each(["stored", "lost"] as const)(
  "a run that begins early has its place, and hears that its job is %s",
  (end) => {
    let now = 0;
    const { handovers, fetcher, held, delivered, ended, told } = stage(() => now);
    fetcher.serve([1]);
    const id = randomUUID();
    const stored = { id, type: "work", queueId: 1, weight: 5, tenant: "t", payload: "1" };
    const job = claimedLater({ ...stored, maxAttempts: 5, uniqueReference: false }, id)(new Date());
    const claim = handovers.offer([stored]);
    if (claim === null) throw new Error("nothing was offered");
    expect(handovers.reserved).toBe(1);
    const begun = handovers.begin(claim, job);
    expect(handovers.reserved).toBe(0);
    expect(delivered.map((one) => [one.job.id, one.isStored])).toEqual([[id, false]]);
    expect([held.claims, told, ended, fetcher.hints()]).toEqual([[id], [true], [], []]);
    if (end === "stored") begun.stored(41);
    else begun.lost();
    expect(ended).toEqual([[delivered[0], end]]);
    now += 1_000;
    const hint = { queueId: 1, weight: 5, afterSeq: 41 };
    expect(fetcher.hints()).toEqual(end === "stored" ? [hint] : []);
  },
);

import { expect, test } from "vitest";
import type { ClaimedJob } from "../../src/domain/job.ts";
import { HeldJobs } from "../../src/worker/held-jobs.ts";

const job = (id: string, claimId: string, crashCount = 0) =>
  ({ id, token: { claimId, number: 1 }, crashCount }) as unknown as ClaimedJob;

test("a claim is finished when the last of its jobs is settled, once each", () => {
  const held = new HeldJobs();
  held.expect("claim");
  const jobs = held.add("claim", "lease", [job("a", "claim"), job("b", "claim")]);
  expect(held.all()).toEqual(jobs);
  const [a, b] = jobs;
  if (a === undefined || b === undefined) throw new Error("nothing was added");
  held.settled(a);
  held.settled(a);
  expect([held.size, held.empty, held.takeFinishedClaims()]).toEqual([1, false, []]);
  held.settled(b);
  expect([held.size, held.empty, held.takeFinishedClaims()]).toEqual([0, true, ["claim"]]);
});

test("a job may be held again while its old run ends", () => {
  const held = new HeldJobs();
  const [old] = held.add("first", "lost lease", [job("a", "first", 1)]);
  const [fresh] = held.add("second", "lease", [job("a", "second", 1)]);
  if (old === undefined || fresh === undefined) throw new Error("nothing was added");
  held.settled(old);
  expect([held.all(), held.claims, held.holdsSuspect]).toEqual([[fresh], ["second"], true]);
  held.settled(fresh);
  expect(held.holdsSuspect).toBe(false);
});

test("aborts those it is asked to, each for its first cause", () => {
  const held = new HeldJobs();
  const [a, b] = held.add("claim", "lease", [job("a", "claim"), job("b", "claim")]);
  expect(held.abort("cancelled", ({ job: { id } }) => id === "b")).toEqual([b]);
  expect(held.abort("lease_lost", () => true)).toEqual([a]);
  expect([a?.cause, b?.cause]).toEqual(["lease_lost", "cancelled"]);
});

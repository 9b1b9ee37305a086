import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { until } from "../support/until.ts";
import {
  type Claim,
  cancelled,
  completionOf,
  dead,
  type Ending,
  ids,
  released,
  retried,
  type Settleable,
  snoozed,
  type Topic,
  toSettlement,
  withoutPlace,
} from "./stage.ts";

const endings: Record<string, Ending> = {
  retried: retried(60_000),
  snoozed: snoozed(60_000),
  released,
  cancelled,
  dead,
};

export const settle: Topic = (stage) => {
  const stale = (job: Settleable): Settleable[] => {
    const { place, token } = job;
    const tokens = [
      { ...token, claimId: randomUUID() },
      { ...token, claimNo: token.claimNo + 1 },
      { ...token, claimNo: token.claimNo - 1 },
    ];
    return [
      ...tokens.map((wrong) => ({ ...job, token: wrong })),
      ...tokens.map((wrong) => ({ ...job, place, token: wrong })),
      { ...job, id: randomUUID() },
    ];
  };

  it("completes a run with its result", async () => {
    const queueId = await stage().queue();
    const job = await stage().running(queueId);
    expect(await stage().complete([job], '{"sum":[1,null]}')).toBe(1);
    const stored = await stage().find(job.id);
    expect(stored).toMatchObject({
      state: "completed",
      attempt: 1,
      result: { sum: [1, null] },
      payload: { n: 1 },
      error: null,
      timeline: [{ outcome: "completed", worker: "worker", attempt: 1 }],
    });
    expect(stored.finishedAt).toBeInstanceOf(Date);
  });

  it("keeps each result of a batch with its own job", async () => {
    const queueId = await stage().queue();
    await stage().put(...stage().jobs(queueId, 4));
    const jobs = await stage().claim(queueId);
    const results = ["0", undefined, "null", '"three"'];
    const turn = { worker: "w", process: stage().process, finishedClaims: [], claim: null };
    const completions = jobs.map((job, i) => completionOf(job, results[i]));
    expect((await stage().worker.turn({ ...turn, completions })).completed).toBeNull();
    const stored = await Promise.all(ids(jobs).map((id) => stage().find(id)));
    expect(stored.map(({ result }) => result)).toEqual([0, null, null, "three"]);
  });

  it("completes what was moved since it was claimed, and nothing that stands in its old place", async () => {
    const queueId = await stage().queue();
    await stage().put(...stage().jobs(queueId, 2));
    const [one, two] = await stage().claim(queueId);
    if (one === undefined || two === undefined) throw new Error("nothing was claimed");
    await stage().sql("update millrace.job set cancel_requested = false where id = $1", [one.id]);
    const tid = two.place?.tid ?? "";
    expect(await stage().complete([{ ...one, place: { tid, seq: one.seq } }])).toBe(1);
    expect([await stage().stateOf(one.id), await stage().stateOf(two.id)]).toEqual([
      "completed",
      "running",
    ]);
  });

  it("completes by place and by id, with results and without", async () => {
    const queueId = await stage().queue();
    for (const result of [undefined, '{"n":1}']) {
      await stage().put(...stage().jobs(queueId, 4));
      const [a, b, c, d] = await stage().claim(queueId);
      if (!a || !b || !c || !d) throw new Error("nothing was claimed");
      expect(await stage().complete([a], result)).toBe(1);
      expect(await stage().complete([withoutPlace(b)], result)).toBe(1);
      expect(await stage().complete([c, withoutPlace(d)], result)).toBe(2);
      const stored = await Promise.all(ids([a, b, c, d]).map((id) => stage().find(id)));
      for (const job of stored) {
        expect(job).toMatchObject({ state: "completed", result: JSON.parse(result ?? "null") });
      }
    }
  });

  it("does not complete under a stale token", async () => {
    const queueId = await stage().queue();
    const job = await stage().running(queueId);
    for (const wrong of stale(job)) expect(await stage().complete([wrong])).toBe(0);
    expect(await stage().stateOf(job.id)).toBe("running");
    expect(await stage().complete([...stale(job), job])).toBe(1);
    expect(await stage().complete([job])).toBe(0);
  });

  for (const [name, outcome] of Object.entries(endings)) {
    it(`is not ${name} under a stale token, and only once under its own`, async () => {
      const queueId = await stage().queue();
      const job = await stage().running(queueId);
      for (const wrong of stale(job)) {
        expect(await stage().settle(wrong, outcome)).toBeUndefined();
      }
      expect(await stage().find(job.id)).toMatchObject({ state: "running", timeline: [] });
      expect(await stage().settle(job, outcome)).toBe(name);
      expect(await stage().settle(job, outcome)).toBeUndefined();
      expect(await stage().settle(job, dead)).toBeUndefined();
      expect(await stage().complete([job])).toBe(0);
      expect((await stage().find(job.id)).timeline).toMatchObject([{ outcome: name, attempt: 1 }]);
    });

    it(`is recognised when ${name} is repeated`, async () => {
      const queueId = await stage().queue();
      const job = await stage().running(queueId);
      await stage().settle(job, outcome);
      const outcomes = await stage().store.settledOutcomes([job, ...stale(job)]);
      expect([...outcomes]).toEqual([[job.id, name]]);
    });
  }

  it("recognises a repeated completion, and nothing else's", async () => {
    const queueId = await stage().queue();
    await stage().put(...stage().jobs(queueId, 2));
    const [one, two] = await stage().claim(queueId);
    if (one === undefined || two === undefined) throw new Error("nothing was claimed");
    await stage().complete([one]);
    const outcomes = await stage().store.settledOutcomes([one, two]);
    expect([...outcomes]).toEqual([[one.id, "completed"]]);
  });

  it("recognises the end of an earlier run after the job went on", async () => {
    const queueId = await stage().queue();
    const first = await stage().running(queueId);
    await stage().settle(first, retried());
    await stage().promoteAll();
    const [second] = await stage().claim(queueId);
    if (second === undefined) throw new Error("nothing was claimed");
    await stage().complete([second]);
    expect([...(await stage().store.settledOutcomes([first]))]).toEqual([[first.id, "retried"]]);
    expect([...(await stage().store.settledOutcomes([second]))]).toEqual([[first.id, "completed"]]);
  });

  it("waits for the delay of a retry and keeps what the attempt was", async () => {
    const queueId = await stage().queue();
    const options = { reference: "r", correlationId: "c", maxRuntimeMs: 9, expiresInMs: 900_000 };
    const job = await stage().running(queueId, options);
    const before = await stage().find(job.id);
    await stage().settle(job, retried(60_000));
    const { timeline, dueAt, ...after } = await stage().find(job.id);
    expect(after).toMatchObject({
      ...{ state: "scheduled", attempt: 1, crashCount: 0, reference: "r", correlationId: "c" },
      ...{ createdAt: before.createdAt, expiresAt: before.expiresAt, payload: { n: 1 } },
    });
    expect(dueAt).toBeInstanceOf(Date);
    expect(timeline).toHaveLength(1);
    await stage().sql("update millrace.scheduled_job set due_at = now() where id = $1", [job.id]);
    await stage().promoteAll();
    const [again] = await stage().claim(queueId);
    expect(again).toMatchObject({ attempt: 2, maxRuntimeMs: 9, token: { claimNo: 2 } });
  });

  it("gives the attempt back on snooze and on release, but never the claim number", async () => {
    const queueId = await stage().queue();
    let job = await stage().running(queueId);
    await stage().settle(job, snoozed());
    await stage().promoteAll();
    [job = job] = await stage().claim(queueId);
    expect([job.attempt, job.token.claimNo]).toEqual([1, 2]);
    await stage().settle(job, released);
    expect(await stage().find(job.id)).toMatchObject({ state: "ready", attempt: 0 });
    [job = job] = await stage().claim(queueId);
    expect([job.attempt, job.token.claimNo]).toEqual([1, 3]);
  });

  it("keeps a released job's place in the order", async () => {
    const queueId = await stage().queue();
    await stage().put(...stage().jobs(queueId, 3));
    const [first] = await stage().claim(queueId, { limit: 1 });
    if (first === undefined) throw new Error("nothing was claimed");
    await stage().settle(first, released);
    expect(ids(await stage().claim(queueId))[0]).toBe(first.id);
  });

  it("keeps everything of a dead letter", async () => {
    const queueId = await stage().queue();
    const job = await stage().running(queueId, { reference: "r", meta: { category: "sync" } });
    await stage().settle(job, dead);
    expect(await stage().find(job.id)).toMatchObject({
      ...{ state: "dead", attempt: 1, reference: "r", payload: { n: 1 } },
      error: { class: "retryable", fingerprint: "f00d", message: "broken", stack: "at x" },
      meta: { category: "sync" },
    });
  });

  it("settles a mixed batch, each job as it was told", async () => {
    const queueId = await stage().queue();
    const kinds = Object.keys(endings);
    await stage().put(...stage().jobs(queueId, kinds.length));
    const jobs = await stage().claim(queueId);
    const batch = jobs.map((job, i) => toSettlement(job, endings[kinds[i] ?? ""] ?? dead));
    const settled = await stage().worker.settle(batch, "w", stage().process);
    expect(jobs.map(({ id }) => settled.get(id))).toEqual(kinds);
    const states = await Promise.all(ids(jobs).map((id) => stage().stateOf(id)));
    expect(states).toEqual(["scheduled", "scheduled", "ready", "cancelled", "dead"]);
  });

  it("does not bring back a job whose cancel was requested", async () => {
    const queueId = await stage().queue();
    for (const outcome of [retried(), snoozed(), released]) {
      const job = await stage().running(queueId);
      expect(await stage().store.cancel(job.id, null)).toBe("requested");
      expect(await stage().settle(job, outcome)).toBe("cancelled");
      const attempt = outcome.kind === "retried" ? 1 : 0;
      expect(await stage().find(job.id)).toMatchObject({ state: "cancelled", attempt });
    }
  });

  it("lets a completion win over a requested cancel", async () => {
    const queueId = await stage().queue();
    const job = await stage().running(queueId);
    await stage().store.cancel(job.id, null);
    expect(await stage().complete([job])).toBe(1);
    expect(await stage().stateOf(job.id)).toBe("completed");
  });

  /** The run's end meets a cancel that has changed the row and not yet committed. */
  async function endDuringCancel<T>(job: Claim, end: () => Promise<T>): Promise<[T, string]> {
    const canceller = await stage().session();
    await canceller.query("begin");
    await canceller.query("update millrace.job set cancel_requested = true where id = $1", [
      job.id,
    ]);
    const ended = end();
    await until("the settle waits for the cancel", async () => {
      const waiting = await stage().sql(
        `select from pg_stat_activity where application_name = 'millrace worker'
        and datname = current_database() and wait_event_type = 'Lock'`,
      );
      return waiting.length === 1;
    });
    await canceller.query("commit");
    await canceller.close();
    return [await ended, await stage().stateOf(job.id)];
  }

  it("completes although a cancel is requested at the same moment", async () => {
    const job = await stage().running(await stage().queue());
    const ended = await endDuringCancel(job, () => stage().complete([job]));
    expect(ended).toEqual([1, "completed"]);
  });

  it("settles although a cancel is requested at the same moment", async () => {
    const queueId = await stage().queue();
    for (const outcome of [dead, retried(), snoozed(), released, cancelled]) {
      const job = await stage().running(queueId);
      const ended = await endDuringCancel(job, () => stage().settle(job, outcome));
      const expected = outcome.kind === "dead" ? "dead" : "cancelled";
      expect(ended).toEqual([expected, expected]);
    }
  });

  it("attaches missing history partitions instead of failing", async () => {
    const queueId = await stage().queue();
    const job = await stage().running(queueId);
    await stage().sql("update millrace.queue set retention_days = 7 where id = $1", [queueId]);
    expect(await stage().complete([job])).toBe(1);
    expect(await stage().stateOf(job.id)).toBe("completed");
  });

  it("keeps each for as long as its own queue says, alone or settled with others", async () => {
    const [brief, long] = [await stage().queue(), await stage().queue()];
    await stage().sql("update millrace.queue set retention_days = 7 where id = $1", [brief]);
    const jobs = [await stage().running(brief), await stage().running(long)];
    const alone = await stage().running(brief);
    expect(await stage().complete(jobs)).toBe(2);
    expect(await stage().complete([alone])).toBe(1);
    const kept = ({ id }: { id: string }) =>
      stage().sql("select retention_days as days from millrace.history where id = $1", [id]);
    const days = await Promise.all([...jobs, alone].map(kept));
    expect(days.flat().map((row) => row.days)).toEqual([7, 30, 7]);
  });
};

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Millrace } from "../../src/index.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { chaosJob, Trial } from "../support/trial.ts";

let trial: Trial;
let proxy: TcpProxy;
beforeEach(async () => {
  trial = await Trial.create();
  proxy = await TcpProxy.start(trial.url);
});
afterEach(async () => {
  await proxy.close();
  await trial.close();
});

const startBehindProxy = () => trial.start({ connect: { databaseUrl: proxy.url } });

test("fault 3: a completion whose answer is lost is repeated and says ok", async () => {
  const process = await startBehindProxy();
  const id = await trial.enqueue({ kind: "long", ms: 500 });
  await proxy.loseAnswer("client", id);
  const repeated = await process.writes("job.settle_repeated");
  expect(repeated).toMatchObject({ job: id, outcome: "completed" });
  expect(await trial.end(id)).toMatchObject({ state: "completed", attempt: 1, crashCount: 0 });
  expect(await trial.historyRows(id)).toBe(1);
  expect(process.of("job.settle_refused")).toEqual([]);
  expect(trial.about(id, "start")).toHaveLength(1);
});

test("fault 3: a completion that never arrived is sent again", async () => {
  const process = await startBehindProxy();
  const id = await trial.enqueue({ kind: "long", ms: 500 });
  await proxy.loseQuestion(id);
  expect(await trial.end(id)).toMatchObject({ state: "completed", attempt: 1, crashCount: 0 });
  expect(await trial.historyRows(id)).toBe(1);
  expect(process.of("job.settle_refused")).toEqual([]);
  expect(process.of("job.settle_repeated")).toEqual([]);
});

test("fault 3: a retry whose answer is lost spends one attempt", async () => {
  const process = await startBehindProxy();
  const id = await trial.enqueue({ kind: "fail", ms: 500, once: true });
  await proxy.loseAnswer("client", id);
  const repeated = await process.writes("job.settle_repeated");
  expect(repeated).toMatchObject({ job: id, outcome: "retried" });
  const job = await trial.end(id);
  expect(job).toMatchObject({ state: "completed", attempt: 2, crashCount: 0 });
  expect(job.timeline.map((entry) => entry.outcome)).toEqual(["retried", "completed"]);
  expect(process.of("job.settle_refused")).toEqual([]);
});

describe("fault 4: an enqueue", () => {
  let producer: Millrace;
  const resolved: boolean[] = [];
  beforeEach(async () => {
    producer = await Millrace.connect({ databaseUrl: proxy.url, logLevel: "silent" });
    resolved.length = 0;
    producer.events.on("flush.resolved", ({ committed }) => resolved.push(committed));
    // So that the producer is known and the statements are prepared.
    await producer.enqueue(chaosJob, { mark: "first" });
    await producer.enqueue(chaosJob, { mark: "first" }, { key: "first" });
  });
  afterEach(() => producer.stop());

  const jobsWith = async (mark: string) => {
    const text = "select id from millrace.job where payload->>'mark' = $1";
    return (await trial.db.query<{ id: string }>(text, [mark])).rows.map((row) => row.id);
  };

  test.each(["question", "answer"] as const)(
    "without a key whose %s is lost is one job",
    async (lost) => {
      const lose =
        lost === "answer"
          ? proxy.loseAnswer("client", "lost-plain")
          : proxy.loseQuestion("lost-plain");
      const { id } = await producer.enqueue(chaosJob, { mark: "lost-plain" });
      await lose;
      expect(resolved).toEqual([lost === "answer"]);
      expect(await jobsWith("lost-plain")).toEqual([id]);
    },
  );

  test.each(["question", "answer"] as const)(
    "whose %s is lost, and then the answer to what has become of it, is one job",
    async (lost) => {
      if (lost === "answer") void proxy.loseAnswer("client", "lost-twice");
      else void proxy.loseQuestion("lost-twice");
      const again = proxy.loseAnswer("client", "resolve_flush");
      const { id } = await producer.enqueue(chaosJob, { mark: "lost-twice" });
      await again;
      expect(resolved).toEqual([lost === "answer"]);
      expect(await jobsWith("lost-twice")).toEqual([id]);
    },
  );

  test.each(["question", "answer"] as const)(
    "with a key whose %s is lost is one job",
    async (lost) => {
      const lose =
        lost === "answer"
          ? proxy.loseAnswer("client", "lost-keyed")
          : proxy.loseQuestion("lost-keyed");
      const { id, existing } = await producer.enqueue(
        chaosJob,
        { mark: "lost-keyed" },
        { key: "k" },
      );
      await lose;
      expect(existing).toBe(false);
      expect(resolved).toHaveLength(1);
      expect(await jobsWith("lost-keyed")).toEqual([id]);
      const again = await producer.enqueue(chaosJob, { mark: "lost-keyed" }, { key: "k" });
      expect(again).toEqual({ id, existing: true });
    },
  );

  test("of many in one transaction is all of them once, when the commit's answer is lost", async () => {
    const lost = proxy.loseAnswer("client", "commit");
    const payloads = Array.from({ length: 5 }, () => ({ mark: "lost-many" }));
    const options = (_: unknown, i: number) => ({ key: `many-${i}` });
    const made = await producer.enqueueMany(chaosJob, payloads, options);
    await lost;
    expect(resolved).toEqual([true]);
    expect((await jobsWith("lost-many")).sort()).toEqual(made.map(({ id }) => id).sort());
  });
});

const ranOnce = async (id: string) => {
  expect(await trial.end(id)).toMatchObject({ state: "completed", attempt: 1, crashCount: 0 });
  expect(await trial.historyRows(id)).toBe(1);
  expect(trial.about(id, "start")).toHaveLength(1);
};

test("fault 4: a job that was claimed with its own enqueue survives the lost answer unspent", async () => {
  const process = await startBehindProxy();
  void proxy.loseAnswer("client", "flush_one_and_claim");
  // Only an idle worker takes a job with its enqueue, and this one polls in between.
  let id: string;
  do {
    id = await process.enqueue({ kind: "quick" });
    await trial.end(id);
  } while (process.of("flush.resolved").length === 0);
  await ranOnce(id);
});

test("fault 4: a job that was handed to a worker elsewhere survives the lost answer and runs once", async () => {
  const process = await trial.start();
  const producer = await Millrace.connect({ databaseUrl: proxy.url, logLevel: "silent" });
  const resolved: boolean[] = [];
  producer.events.on("flush.resolved", ({ committed }) => resolved.push(committed));
  void proxy.loseAnswer("client", "flush_one_and_hand");
  const ids: string[] = [];
  do {
    ids.push((await producer.enqueue(chaosJob, { kind: "quick" })).id);
    await trial.end(ids.at(-1) ?? "");
  } while (resolved.length === 0);
  expect(resolved).toEqual([true]);
  for (const id of ids.slice(-2)) await ranOnce(id);
  expect(process.of("job.settle_refused")).toEqual([]);
  await producer.stop();
});

test("fault 4: a flush that was handed to a worker elsewhere survives the lost answer, each job once", async () => {
  const process = await trial.start({ work: { concurrency: 20 } });
  const producer = await Millrace.connect({ databaseUrl: proxy.url, logLevel: "silent" });
  const resolved: boolean[] = [];
  producer.events.on("flush.resolved", ({ committed }) => resolved.push(committed));
  void proxy.loseAnswer("client", "flush_and_hand");
  const ids: string[] = [];
  do {
    const payloads = Array.from({ length: 10 }, () => ({ kind: "quick" as const }));
    const made = await producer.enqueueMany(chaosJob, payloads);
    ids.push(...made.map(({ id }) => id));
    await trial.end(ids.at(-1) ?? "");
  } while (resolved.length === 0);
  expect(resolved).toEqual([true]);
  for (const id of ids.slice(-20)) await ranOnce(id);
  expect(process.of("job.settle_refused")).toEqual([]);
  await producer.stop();
});

test("fault 5: a claim whose answer is lost is asked for again and brings the same jobs", async () => {
  const process = await startBehindProxy();
  const lost = proxy.loseAnswer("server", "lost-claim");
  const ids = await trial.enqueueMany(5, () => ({ kind: "quick", mark: "lost-claim" }));
  await lost;
  const replayed = await process.writes("claim.replayed", ({ jobs }) => jobs !== 0);
  expect(replayed.jobs).toBeGreaterThan(0);
  await trial.drained();
  for (const id of ids) {
    expect(await trial.job(id)).toMatchObject({ state: "completed", attempt: 1, crashCount: 0 });
    expect(trial.about(id, "start")).toHaveLength(1);
  }
});

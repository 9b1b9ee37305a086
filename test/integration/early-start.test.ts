import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { defineJob, type Enqueued, type JobDefinition, type Millrace } from "../../src/index.ts";
import { createGate } from "../support/gate.ts";
import { newQueue, useMillrace } from "../support/instance.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

// A poll that never comes: what runs was claimed with its flush.
const instances = useMillrace({ pollMs: 600_000 });
const flush = "flush_one_and_claim";

let proxy: TcpProxy;
let millrace: Millrace;
let gate: ReturnType<typeof createGate>;
let job: JobDefinition;
let runs: { n: unknown; id: string; token: string; attempt: number; signal: AbortSignal }[];
const told: string[] = [];

beforeAll(async () => {
  proxy = await TcpProxy.start(instances.url);
});
afterAll(() => proxy.close());
beforeEach(async () => {
  gate = createGate();
  runs = [];
  told.length = 0;
  job = newJob();
  millrace = await instances.connect({ databaseUrl: proxy.url });
  for (const name of ["flush.resolved", "job.settle_refused", "job.settle_repeated"] as const)
    millrace.events.on(name, (event) =>
      told.push("committed" in event ? `${name} ${event.committed}` : name),
    );
});
afterEach(() => gate.open());

const newJob = (options: { waitForCommit?: boolean } = {}): JobDefinition =>
  defineJob({
    ...{ type: "early", queue: newQueue(), ...options },
    async run({ payload: n, job: { id, token }, attempt, signal }) {
      runs.push({ n, id, token: `${token.claimId}/${token.claimNo}`, attempt, signal });
      if (n !== "before") await gate.opened;
      return n;
    },
  });

/** Until the worker waits and takes what is offered. */
async function warm(jobs = [job]): Promise<void> {
  const { run: defaultHandler = () => {}, queue } = job;
  const all = jobs.length > 0 ? {} : { defaultHandler, queues: [queue] };
  await millrace.work(jobs, { drainMs: 5_000, ...all });
  await until("a job was claimed by its flush", async () => {
    await delay(5);
    const { id } = await millrace.enqueue(job, "before");
    await millrace.waitFor(id);
    return runs.at(-1)?.token === `${id}/1`;
  });
  runs.length = 0;
}

interface Caught<T> {
  readonly enqueued: Promise<Enqueued>;
  readonly sprung: T;
  readonly n: number;
}

/** Enqueues until the trap has caught one: a worker that just looks takes none with its flush. */
async function caughtBy<T>(trap: Promise<T>): Promise<Caught<T>> {
  for (let n = 0; ; n++) {
    const enqueued = millrace.enqueue(job, n);
    enqueued.catch(() => {});
    const sprung = trap.then((value) => ({ value }));
    const first = await Promise.race([sprung, enqueued.then(() => null)]);
    if (first !== null) return { enqueued, sprung: first.value, n };
    await delay(20);
  }
}

const begun = (n: number) => until("its run has begun", () => runs.find((run) => run.n === n));
const isStored = async (id: string) =>
  (await instances.query("select 1 from millrace.job where id = $1", [id])).length === 1;
const isOpen = async (promise: Promise<unknown>) =>
  (await Promise.race([promise.then(() => "done"), delay(50).then(() => "open")])) === "open";
const once = { state: "completed", attempt: 1, crashCount: 0 };

describe("a run beside its producer", () => {
  it("begins while its job is committed; nobody hears of either before that", async () => {
    await warm();
    const { enqueued, sprung: commit, n } = await caughtBy(proxy.holdCommit(flush));
    const { id, token, attempt } = await begun(n);
    expect([token, attempt]).toEqual([`${id}/1`, 1]);
    expect(await isStored(id)).toBe(false);
    gate.open();
    expect(await isOpen(enqueued)).toBe(true);
    expect(told).toEqual([]);
    commit();
    expect(await enqueued).toEqual({ id, existing: false });
    const { timeline, ...ended } = await millrace.waitFor(id);
    expect(ended).toMatchObject(once);
    expect(timeline).toMatchObject([{ token, outcome: "completed" }]);
    expect(runs.filter((run) => run.id === id)).toHaveLength(1);
    expect(told).toEqual([]);
  });

  it("waits for the commit where its definition says so", async () => {
    job = newJob({ waitForCommit: true });
    await warm();
    const { enqueued, sprung: commit, n } = await caughtBy(proxy.holdCommit(flush));
    await until("the server has executed it", async () => {
      const text = `select 1 from pg_stat_activity where datname = current_database() and state = 'active'
        and query like 'with fence%' and wait_event = 'ClientRead'`;
      return (await instances.query(text)).length > 0;
    });
    expect(await isOpen(enqueued)).toBe(true);
    expect(runs.filter((run) => run.n === n)).toEqual([]);
    gate.open();
    commit();
    const { id } = await enqueued;
    expect(await millrace.waitFor(id)).toMatchObject(once);
  });

  it.each(["a definition", "a default handler"])(
    "waits for the commit where the producer's definition says so, beside %s that does not",
    async (kind) => {
      const asked = { ...job, waitForCommit: true };
      await warm(kind === "a definition" ? [job] : []);
      job = asked;
      const { enqueued, sprung: commit, n } = await caughtBy(proxy.holdCommit(flush));
      expect(await isOpen(enqueued)).toBe(true);
      expect(runs.filter((run) => run.n === n)).toEqual([]);
      gate.open();
      commit();
      expect(await millrace.waitFor((await enqueued).id)).toMatchObject(once);
    },
  );

  it("goes on when the commit's answer is lost", async () => {
    await warm();
    const { enqueued, n } = await caughtBy(proxy.loseCommitsAnswer(flush));
    const { id } = await begun(n);
    expect((await enqueued).id).toBe(id);
    gate.open();
    expect(await millrace.waitFor(id)).toMatchObject(once);
    expect(told).toEqual(["flush.resolved true"]);
    expect(runs.filter((run) => run.id === id)).toHaveLength(1);
  });

  it("goes on when the commit is lost: its job is stored again under its claim", async () => {
    await warm();
    const { enqueued, n } = await caughtBy(proxy.holdCommit(flush));
    const { id, token } = await begun(n);
    proxy.cut();
    expect((await enqueued).id).toBe(id);
    expect(await millrace.get(id)).toMatchObject({ state: "running", attempt: 1 });
    gate.open();
    const { timeline, ...ended } = await millrace.waitFor(id);
    expect(ended).toMatchObject(once);
    expect(timeline).toMatchObject([{ token, outcome: "completed" }]);
    expect(told).toEqual(["flush.resolved false"]);
    expect(runs.filter((run) => run.id === id)).toHaveLength(1);
  });

  it("keeps its job also if by then another is ready before it, and the queue rests", async () => {
    await warm();
    const { enqueued, n } = await caughtBy(proxy.holdCommit(flush));
    const { id } = await begun(n);
    await instances.millrace.pauseQueue(job.queue);
    const other = await instances.millrace.enqueue(job, "other");
    proxy.cut();
    expect((await enqueued).id).toBe(id);
    expect(await millrace.get(id)).toMatchObject({ state: "running", attempt: 1 });
    gate.open();
    expect(await millrace.waitFor(id)).toMatchObject(once);
    expect(await millrace.get(other.id)).toMatchObject({ state: "ready", attempt: 0 });
    await instances.millrace.resumeQueue(job.queue);
    expect(await millrace.waitFor(other.id)).toMatchObject(once);
  });

  it("keeps its job also where its worker looks in several places", async () => {
    const other = newJob();
    await warm([job, { ...other, type: "early.other" }]);
    await millrace.waitFor(
      (await millrace.enqueue({ ...other, type: "early.other" }, "before")).id,
    );
    const { enqueued, n } = await caughtBy(proxy.holdCommit("flush_and_claim"));
    const { id } = await begun(n);
    await instances.millrace.pauseQueue(other.queue);
    proxy.cut();
    expect((await enqueued).id).toBe(id);
    gate.open();
    expect(await millrace.waitFor(id)).toMatchObject(once);
    expect(runs.filter((run) => run.id === id)).toHaveLength(1);
  });

  describe("whose enqueue was given up", () => {
    beforeEach(async () => {
      const impatient = { queryTimeoutMs: 300, enqueueTimeoutMs: 600 };
      millrace = await instances.connect({ databaseUrl: proxy.url, ...impatient });
    });
    const givenUp = async () => {
      await warm();
      const caught = await caughtBy(proxy.holdCommit(flush, { outlives: true }));
      const run = await begun(caught.n);
      await expect(caught.enqueued).rejects.toMatchObject({ code: "DATABASE_UNAVAILABLE" });
      return { ...caught, ...run };
    };

    it("goes on, and its end is stored if the job is, however late", async () => {
      const { id, signal, sprung: commit } = await givenUp();
      gate.open();
      expect(await isStored(id)).toBe(false);
      commit();
      const ended = () => millrace.get(id).then((found) => found?.finishedAt != null && found);
      expect(await until("its end is stored", ended)).toMatchObject(once);
      expect(signal.aborted).toBe(false);
      expect(runs.filter((run) => run.id === id)).toHaveLength(1);
    });

    it("is aborted when the worker stops", async () => {
      const { id, signal, sprung: commit } = await givenUp();
      const stopped = millrace.stop();
      await until("its signal aborts", () => signal.aborted);
      expect(signal.reason).toMatchObject({ cause: "not_stored" });
      gate.open();
      await stopped;
      expect(await isStored(id)).toBe(false);
      commit(); // nothing of it is left for other tests to wait for
    });
  });

  it("is over with the commit before the worker stops", async () => {
    await warm();
    const { enqueued, sprung: commit, n } = await caughtBy(proxy.holdCommit(flush));
    const { id } = await begun(n);
    gate.open();
    const stopped = millrace.stop();
    expect(await isOpen(stopped)).toBe(true);
    commit();
    expect((await enqueued).id).toBe(id);
    await stopped;
    expect(await instances.millrace.get(id)).toMatchObject(once);
  });
});

describe("a commit that fails", () => {
  const fails = async (errcode: string, times: number) => {
    await instances.query(`create sequence failures`);
    await instances.query(`create function fail() returns trigger language plpgsql as $$ begin
      if new.queue_id = (select id from millrace.queue where name = '${job.queue}')
        and nextval('failures') <= ${times}
      then raise exception 'not this one' using errcode = '${errcode}'; end if;
      return null; end $$`);
    await instances.query(`create constraint trigger fail after insert on millrace.job
      deferrable initially deferred for each row execute function fail()`);
  };
  afterEach(async () => {
    await instances.query("drop trigger fail on millrace.job");
    await instances.query("drop function fail");
    await instances.query("drop sequence failures");
  });

  it("ends the run it began: its signal aborts, its end is refused, and the worker goes on", async () => {
    await warm();
    await fails("P0001", 1_000);
    // A worker that just looks begins none.
    await until("a run has begun whose job was not stored", async () => {
      await expect(millrace.enqueue(job, 1)).rejects.toThrow("not this one");
      return runs.length > 0;
    });
    await instances.query("select setval('failures', 1000)");
    const { id, signal } = await begun(1);
    expect(signal.reason).toMatchObject({ cause: "not_stored" });
    gate.open();
    await until("its end is refused", () => told.includes("job.settle_refused"));
    expect(await millrace.get(id)).toBeNull();
    const next = await millrace.enqueue(job, 2);
    expect(await millrace.waitFor(next.id)).toMatchObject(once);
    expect(runs.map(({ n }) => n)).toEqual([1, 2]);
  });

  it("is tried again where that may help, for the run it began", async () => {
    await warm();
    await fails("40001", 2);
    gate.open();
    await until("a run began with the flush that failed", async () => {
      runs.length = 0;
      await instances.query("select setval('failures', 1, false)");
      const { id } = await millrace.enqueue(job, 1);
      expect(await millrace.waitFor(id)).toMatchObject(once);
      expect(runs).toHaveLength(1);
      return runs[0]?.token === `${id}/1`;
    });
    expect(told).toEqual([]);
  });
});

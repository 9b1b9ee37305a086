// Numbered flushes: an ambiguous commit is resolved exactly. PostgreSQL's own way, below the contract.

import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import { systemClock } from "../../src/runtime/clock.ts";
import { Events } from "../../src/runtime/events.ts";
import type { Connection } from "../../src/store/postgres/connection.ts";
import { Database } from "../../src/store/postgres/database.ts";
import { enqueueJobs } from "../../src/store/postgres/enqueue.ts";
import { flushJobs, registerProducer, resolved } from "../../src/store/postgres/flush.ts";
import { PostgresProducer } from "../../src/store/postgres/producer.ts";
import { statement } from "../../src/store/postgres/statement.ts";
import type { NewJob } from "../../src/store/store.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";
import { ids, type Topic } from "./stage.ts";

export const flushFence: Topic = (stage) => {
  let database: Database;
  let connection: Connection;
  let other: Connection;
  const events = new Events();
  const lost = events.once("connection.lost");

  const common = { events, clock: systemClock, random: Math.random };
  const databaseAt = (url: string) =>
    new Database({ ...common, url, schema: "millrace", poolSize: 1, queryTimeoutMs: 10_000 });
  let url: string;

  beforeAll(async () => {
    url = await stage().url();
    database = databaseAt(url);
    connection = database.reserve("fence");
    other = database.reserve("fence too");
  });
  afterAll(async () => {
    await connection.close();
    await other.close();
    await database.close();
  });

  const newProducer = async () => {
    const producer = randomUUID();
    await registerProducer(connection, producer);
    return producer;
  };
  const options = { placing: "silent", payloadsApart: true } as const;
  const flush = async (producer: string, flushNo: number, jobs: NewJob[], by = connection) => {
    const request = { producer, flushNo, channel: "c", notice: null, jobs };
    return (await flushJobs(by, request, options)).flushed;
  };
  const stored = async (jobs: NewJob[]) => (await stage().store.find(ids(jobs))).length;

  it("lets each number in once, and in order", async () => {
    const [queueId, producer] = [await stage().queue(), await newProducer()];
    const [first, repeated, second, skipping] = [1, 1, 1, 1].map(() => stage().jobs(queueId, 2));
    if (!first || !repeated || !second || !skipping) return;
    expect(await flush(producer, 1, first)).toBe(true);
    expect(await flush(producer, 1, repeated)).toBe(false);
    expect(await flush(producer, 3, skipping)).toBe(false);
    expect(await flush(producer, 2, second)).toBe(true);
    expect(await flush(randomUUID(), 1, skipping)).toBe(false);
    expect([await stored(repeated), await stored(skipping)]).toEqual([0, 0]);
    expect(ids(await stage().claim(queueId))).toEqual(ids([...first, ...second]));
    expect((await stage().store.counts([queueId])).get(queueId)?.enqueued).toBe(4);
  });

  it("keeps the long payloads of a refused flush no more than its jobs", async () => {
    const [queueId, producer] = [await stage().queue(), await newProducer()];
    const long = () => stage().jobs(queueId, 2, { payload: JSON.stringify("word ".repeat(100)) });
    const [first, repeated] = [long(), long()];
    expect(await flush(producer, 1, first)).toBe(true);
    expect(await flush(producer, 1, repeated)).toBe(false);
    const kept = await stage().sql<{ id: string }>(
      "select job_id as id from millrace.long_payload where job_id = any($1::uuid[]) order by 1",
      [ids([...first, ...repeated])],
    );
    expect(ids(kept)).toEqual(ids(first));
  });

  it("says exactly whether a flush was committed", async () => {
    const [queueId, producer] = [await stage().queue(), await newProducer()];
    await flush(producer, 1, stage().jobs(queueId, 1));
    expect(await resolved(connection, producer, 1)).toEqual({ committed: true, flushNo: 1 });
    expect(await resolved(connection, producer, 2)).toEqual({ committed: false, flushNo: 3 });
    expect(await resolved(connection, randomUUID(), 1)).toMatchObject({ committed: false });
  });

  it("says so again to who has not heard the answer", async () => {
    const [queueId, producer] = [await stage().queue(), await newProducer()];
    await flush(producer, 1, stage().jobs(queueId, 1));
    for (const _ of ["first", "again"])
      expect(await resolved(connection, producer, 1)).toEqual({ committed: true, flushNo: 1 });
    for (const _ of ["first", "again"])
      expect(await resolved(connection, producer, 2)).toEqual({ committed: false, flushNo: 3 });
  });

  it("refuses the late arrival of a flush that was said not to be committed", async () => {
    const [queueId, producer] = [await stage().queue(), await newProducer()];
    const late = stage().jobs(queueId, 3);
    const { committed, flushNo } = await resolved(connection, producer, 1);
    expect(committed).toBe(false);
    expect(await flush(producer, 1, late)).toBe(false);
    expect(await stored(late)).toBe(0);
    expect(await flush(producer, flushNo + 1, late)).toBe(true);
  });

  it("waits for a flush that is under way, and then knows how it ended", async () => {
    for (const end of ["commit", "rollback"]) {
      const [queueId, producer] = [await stage().queue(), await newProducer()];
      const jobs = stage().jobs(queueId, 1);
      const session = await stage().session();
      await session.query("begin");
      await session.query("update millrace.producer set flush_no = 1 where id = $1", [producer]);
      const asked = resolved(other, producer, 1);
      await until("the question waits", async () => {
        const waiting = await stage().sql(
          "select from pg_stat_activity where application_name = 'millrace fence too' and wait_event_type = 'Lock'",
        );
        return waiting.length === 1;
      });
      await session.query(end);
      await session.close();
      const { committed, flushNo } = await asked;
      expect(committed).toBe(end === "commit");
      expect(await flush(producer, 1, jobs)).toBe(false);
      expect(await flush(producer, flushNo + 1, jobs)).toBe(true);
    }
  });

  it.each(["ready", "named"] as const)(
    "takes no flush of %s jobs for the one before it, of which nobody could tell what became",
    async (kind) => {
      const [queueId, proxy] = [await stage().queue(), await TcpProxy.start(url)];
      const behind = databaseAt(proxy.url);
      let laterMs = 0;
      const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + laterMs };
      const producer = new PostgresProducer({
        ...{ ...common, clock, connection: behind.reserve("impatient") },
        ...{
          channel: "c",
          kind,
          patienceMs: 60_000,
          allowed: { payloadsApart: true, tallies: true },
        },
      });
      const flush = (job: NewJob) => producer.flush([job], { notice: null });
      const [first, unknown, next] = [1, 2, 3].map(() => stage().job(queueId));
      if (!first || !unknown || !next) return;
      await flush(first);
      void proxy.loseAnswer("client", unknown.id).then(() => {
        proxy.refuse();
        laterMs = 60_000;
      });
      await expect(flush(unknown)).rejects.toMatchObject({ code: "DATABASE_UNAVAILABLE" });
      expect(await stored([unknown])).toBe(1);
      proxy.open();
      void proxy.loseQuestion(next.id);
      await expect(flush(next)).resolves.toMatchObject({ answers: [{ id: next.id }] });
      expect(await stored([next])).toBe(1);
      await producer.close();
      await behind.close();
      await proxy.close();
    },
  );

  it("holds for named jobs as well", async () => {
    const [queueId, producer] = [await stage().queue(), await newProducer()];
    const named = (jobs: NewJob[], flushNo: number) =>
      enqueueJobs((source, values) => connection.query(source, values), {
        ...{ producer, flushNo, channel: "c", notice: null, jobs },
      });
    const keyed = () => stage().job(queueId, { key: randomUUID(), requestHash: "aa" });
    const [first, second] = [keyed(), keyed()];
    expect(await named([first], 1)).toEqual([{ id: first.id, existing: false }]);
    expect(await named([second], 1)).toBeNull();
    expect(await stage().store.findByKey("acme", second.key ?? "")).toBeNull();
    expect(await stored([second])).toBe(0);
  });

  it("does not go on with a transaction on another connection", async () => {
    const jobId = randomUUID();
    const name = statement(
      "",
      "insert into millrace.unique_name (scope, key, job_id) values ('x', $1::text, $2::uuid)",
    );
    const transaction = other.transaction(async (query) => {
      await stage().sql(
        `select pg_terminate_backend(pid) from pg_stat_activity
        where application_name = 'millrace fence too' and datname = current_database()`,
      );
      await lost;
      await query(name, [jobId, jobId]);
    });
    await expect(transaction).rejects.toThrow();
    expect(await stage().sql("select from millrace.unique_name where key = $1", [jobId])).toEqual(
      [],
    );
  });

  it.each([
    ["the producer's connection is cut", "pg_terminate_backend"],
    ["its statement is cancelled", "pg_cancel_backend"],
  ])("stores every job once although %s mid-flush", async (_, end) => {
    const queueId = await stage().queue();
    for (const kind of ["ready", "named"] as const) {
      const session = stage().store.producer(kind);
      await session.flush([stage().job(queueId, { weight: 0 })], { notice: null });
      const blocker = await stage().session();
      await blocker.query("begin");
      await blocker.query("lock table millrace.queue_count in share mode");
      const jobs = stage().jobs(queueId, 5);
      const flushed = session.flush(jobs, { notice: null });
      await until("the flush was cut", async () => {
        const cut = await stage().sql(
          `select ${end}(pid) from pg_stat_activity
          where application_name = $1 and datname = current_database() and wait_event_type = 'Lock'`,
          [`millrace producer ${kind}`],
        );
        return cut.length === 1;
      });
      await blocker.query("rollback");
      await blocker.close();
      const { answers } = await flushed;
      expect(answers).toEqual(jobs.map(({ id }) => ({ id, existing: false })));
      await session.close();
    }
    const claimed = ids(await stage().claim(queueId));
    expect(claimed).toHaveLength(12);
    expect(new Set(claimed).size).toBe(12);
  });
};

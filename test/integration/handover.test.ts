// A worker of another instance gets a lone job with the flush that stores it.

import { randomUUID } from "node:crypto";
import pg from "pg";
import { describe, expect, it } from "vitest";
import { type ConnectOptions, defineJob, type WorkOptions } from "../../src/index.ts";
import {
  handoverStage,
  handTo,
  heardOf,
  holding,
  offerFor,
  offersFor,
  untilHanded,
} from "../support/handovers.ts";
import { newQueue, useMillrace } from "../support/instance.ts";
import { until } from "../support/until.ts";

// A poll that never comes: what runs was handed over or announced.
const instances = useMillrace({ pollMs: 600_000 });

const stageOf = (work?: WorkOptions, connect?: ConnectOptions) =>
  handoverStage(instances, work, connect);
const stateOf = async (id: string) => (await instances.millrace.get(id))?.state;

describe("a lone job for an idle worker of another instance", () => {
  it("is claimed by the flush that stores it, and runs once and in order", async () => {
    const { producer, consumer, job, runs } = await stageOf();
    const made = heardOf(producer, "handover.made");
    const received = heardOf(consumer, "handover.received");
    const from = runs.length;
    const sent: number[] = [];
    await until("ten more were handed over", async () => {
      sent.push(sent.length);
      const { id } = await producer.enqueue(job, sent.length);
      expect(await producer.waitFor(id)).toMatchObject({ attempt: 1, state: "completed" });
      return made.length >= 10;
    });
    expect(runs.slice(from)).toEqual(sent.map((n) => n + 1));
    await until("all were received", () => received.length === made.length);
    expect(received.every(({ jobs, kept }) => jobs === 1 && kept)).toBe(true);
    for (const { id } of made) {
      const ended = await producer.get(id);
      expect(ended?.startedAt).toEqual(ended?.createdAt);
    }
    await until("no claim is left", async () => {
      await producer.waitFor((await producer.enqueue(job, "last")).id);
      const claims = await instances.query("select from millrace.claim");
      return claims.length <= 1;
    });
  });

  it("is read by the worker when it is too long for its notice", async () => {
    const { producer, consumer, job, runs } = await stageOf();
    const received = heardOf(consumer, "handover.received");
    const long = Array.from({ length: 4_000 }, (_, n) => n);
    const offer = await offerFor(producer, job.queue);
    const payload = JSON.stringify(long);
    const id = (await handTo(producer, offer, { payload })) ?? "";
    expect(await producer.result(id)).toEqual(long);
    const { id: next } = await producer.enqueue(job, long);
    expect(await producer.result(next)).toEqual(long);
    expect(received.length).toBeGreaterThan(0);
    expect(runs.filter((payload) => Array.isArray(payload))).toEqual([long, long]);
  });

  it("is not handed to a worker that does not know its type, nor past an older one", async () => {
    const { producer, job } = await stageOf();
    const made = heardOf(producer, "handover.made");
    const other = defineJob({ type: "unknown", queue: job.queue });
    const { id } = await producer.enqueue(other, 1);
    expect(await producer.result((await producer.enqueue(job, 2)).id)).toBe(2);
    expect(made).toEqual([]);
    expect(await stateOf(id)).toBe("ready");
  });

  it("is not handed over any more in a queue that has got a limit", async () => {
    const { producer, job } = await stageOf();
    const before = await offerFor(producer, job.queue);
    await instances.millrace.configureQueue(job.queue, { concurrency: 3 });
    await until("the offer is another", async () => {
      const offers = await offersFor(producer, job.queue);
      return offers.length === 0;
    });
    expect(await handTo(producer, before, {})).toBeNull();
    expect(await producer.result((await producer.enqueue(job, 2)).id)).toBe(2);
  });
});

describe("a worker without room", () => {
  it("offers nothing when it has one slot, in which jobs start in their order", async () => {
    const producer = await instances.connect();
    const consumer = await instances.connect();
    const { job } = holding("work", newQueue());
    const one = holding("work", newQueue());
    await consumer.work([job], { drainMs: 0 });
    await consumer.work([one.job], { drainMs: 0, concurrency: 1 });
    expect(await producer.result((await producer.enqueue(one.job, 1)).id)).toBe(1);
    await untilHanded(producer, job, instances.millrace);
    const { queueIds } = await offerFor(producer, job.queue);
    const [queue] = (await producer.queues()).filter(({ name }) => name === one.job.queue);
    const offers = await producer.store.offers();
    expect(queueIds).not.toContain(queue?.id);
    expect(offers.filter((offer) => offer.queueIds.includes(queue?.id ?? 0))).toEqual([]);
  });

  it("offers nothing, and gives back what is handed over all the same", async () => {
    const { producer, consumer, job, runs, open } = await stageOf({ concurrency: 2 });
    const offer = await offerFor(producer, job.queue);
    const received = heardOf(consumer, "handover.received");
    const { id: first } = await producer.enqueue(job, "hold");
    const { id: second } = await producer.enqueue(job, "hold");
    const held = () => runs.filter((payload) => payload === "hold").length;
    await until("both slots are taken", () => held() === 2);
    await until("nothing is offered", async () => {
      return (await offersFor(producer, job.queue)).length === 0;
    });
    expect(await handTo(producer, offer, { weight: 6 })).toBeNull();
    received.splice(0);
    // Somebody says that it stands although it does not.
    const liar = new pg.Client({ connectionString: instances.url });
    await liar.connect();
    const lock = "select pg_advisory_lock(hashtextextended($1::uuid::text, 0))";
    await liar.query(lock, [offer.leaseId]);
    const id = (await handTo(producer, offer, { weight: 7 })) ?? "";
    await liar.end();
    const [answer] = await until("it is received", () => received.length > 0 && received);
    expect(answer).toMatchObject({ jobs: 1, kept: false });
    await until("it is given back", async () => (await stateOf(id)) === "ready");
    expect(await producer.get(id)).toMatchObject({ attempt: 0, crashCount: 0 });
    open();
    for (const job of [first, second, id])
      expect(await producer.waitFor(job)).toMatchObject({ state: "completed", attempt: 1 });
    // The one that was stored as ready without a word is found when the worker looks.
    const handed = () => runs.filter((payload) => payload === "handed").length;
    await until("both have run", () => handed() >= 2);
    expect(handed()).toBe(2);
  });
});

describe("what is handed over and not heard of", () => {
  const unheard = { channel: "nobody_listens" };

  it("is given back with a renewal, and runs; the notice comes too late then", async () => {
    const { producer, consumer, job, runs } = await stageOf({}, { renewMs: 200, leaseMs: 60_000 });
    const released = consumer.events.once("claim.released");
    const offer = await offerFor(producer, job.queue);
    const claimId = randomUUID();
    const id = (await handTo(producer, offer, {}, { ...unheard, claimId })) ?? "";
    expect(await released).toMatchObject({ claims: 1 });
    const ended = await producer.waitFor(id);
    expect(ended).toMatchObject({ attempt: 1, crashCount: 0 });
    const received = heardOf(consumer, "handover.received");
    const stored = JSON.stringify({ id, type: job.type, queueId: offer.queueIds[0], weight: 5 });
    const text = `${offer.leaseId} ${claimId} ${id} 5 ${+ended.createdAt / 1_000}\n${stored}\n"handed"`;
    await instances.query("select pg_notify($1, $2)", [offer.channel, text]);
    await until("the late notice is looked at", () => received.length > 0);
    expect(received).toMatchObject([{ claim: claimId, jobs: 0 }]);
    expect(runs.filter((payload) => payload === "handed")).toHaveLength(1);
  });

  it("goes back unspent when the worker stops, whose offer ends", async () => {
    const { producer, worker, job } = await stageOf();
    const offer = await offerFor(producer, job.queue);
    const id = (await handTo(producer, offer, {}, unheard)) ?? "";
    expect(await stateOf(id)).toBe("running");
    await worker.stop();
    expect(await producer.get(id)).toMatchObject({ state: "ready", attempt: 0, crashCount: 0 });
    expect((await producer.store.offers()).map(({ leaseId }) => leaseId)).not.toContain(
      offer.leaseId,
    );
    expect(await handTo(producer, offer, { weight: 6 })).toBeNull();
  });
});

describe("a notice that lies", () => {
  it("brings neither another's job nor the same one twice", async () => {
    const { producer, consumer, job, runs, open } = await stageOf();
    const received = heardOf(consumer, "handover.received");
    const other = holding("elsewhere", newQueue());
    const elsewhere = await instances.connect();
    await elsewhere.work([other.job], { drainMs: 0 });
    const { id } = await producer.enqueue(other.job, "hold");
    await until("it runs elsewhere", () => other.runs.length === 1);
    const mine = await producer.enqueue(job, "hold");
    await until("the other runs here", () => runs.includes("hold"));
    const offer = await offerFor(producer, job.queue);
    const claimOf = async (jobId: string) => {
      const [row] = await instances.query<{ id: string }>(
        "select id from millrace.claim where $1 = any (job_ids)",
        [jobId],
      );
      return `${offer.leaseId} ${row?.id} ${jobId}`;
    };
    const theirs = await claimOf(id);
    const lie = (text: string) =>
      instances.query("select pg_notify($1, $2)", [offer.channel, text]);
    await lie(await claimOf(mine.id));
    for (const more of ["", " 5 9e9\nno job", " 5 9e9\n{}\n{}"]) {
      received.splice(0);
      await lie(`${theirs}${more}`);
      await until("it is looked at", () => received.length > 0);
      expect(received).toMatchObject([{ jobs: 0 }]);
    }
    open();
    other.open();
    for (const one of [id, mine.id])
      expect(await producer.waitFor(one)).toMatchObject({ state: "completed", attempt: 1 });
    expect(runs.filter((payload) => payload === "hold")).toHaveLength(1);
    expect(other.runs).toEqual(["hold"]);
  });
});

// A producer, a worker in another instance, and what they hand over.

import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import {
  type AnyJobDefinition,
  type ConnectOptions,
  defineJob,
  type Millrace,
  type WorkOptions,
} from "../../src/index.ts";
import type { EventMap } from "../../src/runtime/events.ts";
import { uuidv7 } from "../../src/runtime/uuid.ts";
import type { Handover, NewJob, Offer } from "../../src/store/store.ts";
import { createGate } from "./gate.ts";
import { type Instances, newQueue } from "./instance.ts";
import { until } from "./until.ts";

/** What an instance has told so far. */
export function heardOf<N extends "handover.made" | "handover.received">(
  millrace: Millrace,
  name: N,
): EventMap[N][] {
  const heard: EventMap[N][] = [];
  millrace.events.on(name, (event) => void heard.push(event));
  return heard;
}

type Definition = AnyJobDefinition & Parameters<Millrace["enqueue"]>[0];

/** Sends lone jobs until one of them was handed over; `first` sends those that show the worker its way. */
export async function untilHanded(
  producer: Millrace,
  job: Definition,
  first = producer,
): Promise<void> {
  const made = heardOf(producer, "handover.made");
  const send = async (sender: Millrace) => {
    await sender.waitFor((await sender.enqueue(job, "quick" as never)).id);
    await delay(50); // What comes without a pause finds a worker of few slots busy.
  };
  await until(`a worker knows how far ${job.queue} is claimed`, async () => {
    await send(first);
    return (await offersFor(producer, job.queue)).some(({ hints }) => hints.length > 0);
  });
  await until(`a job of ${job.queue} is handed over`, async () => {
    await send(producer);
    return made.length > 0;
  });
}

/** The offer that stands for this queue. */
export async function offerFor(producer: Millrace, queue: string): Promise<Offer> {
  return until(`an offer stands for ${queue}`, async () => (await offersFor(producer, queue))[0]);
}

export async function offersFor(producer: Millrace, queue: string): Promise<Offer[]> {
  const found = (await producer.queues()).find(({ name }) => name === queue);
  const offers = await producer.store.offers();
  return offers.filter(({ queueIds }) => queueIds.includes(found?.id ?? 0));
}

/** Hands a job over as a producer would; answers its id, or null if it was refused. */
export async function handTo(
  producer: Millrace,
  offer: Offer,
  job: Partial<NewJob>,
  options: Partial<Handover> = {},
): Promise<string | null> {
  const { leaseId, offerId, channel, leaseLeftMs, most } = offer;
  const made: NewJob = {
    ...{ id: uuidv7(), type: "work", queueId: offer.queueIds[0] ?? 0, tenant: "default" },
    ...{ weight: 5, maxAttempts: 5, payload: '"handed"' },
    ...job,
  };
  const claimed = { claimId: randomUUID(), afterSeq: 0, texts: [] };
  const session = producer.store.producer("ready");
  const flushed = await session.flush([made], {
    notice: null,
    handover: { leaseId, offerId, channel, leaseLeftMs, most, ...claimed, ...options },
  });
  await session.close();
  return flushed.claimedAt === null ? null : made.id;
}

export interface HandoverStage {
  readonly producer: Millrace;
  readonly consumer: Millrace;
  readonly worker: Awaited<ReturnType<Millrace["work"]>>;
  readonly job: ReturnType<typeof holding>["job"];
  readonly runs: unknown[];
  /** Lets jobs end that hold their slot. */
  readonly open: () => void;
}

/** Runs everything at once, except what is called "hold". */
export function holding(type: string, queue: string) {
  const runs: unknown[] = [];
  const gate = createGate();
  const job = defineJob({
    type,
    queue,
    run: async ({ payload }) => {
      runs.push(payload);
      if (payload === "hold") await gate.opened;
      else if (payload === "quick") await delay(12);
      return payload;
    },
  });
  return { job, runs, open: gate.open };
}

/** Jobs were handed over already when it is there. */
export async function handoverStage(
  instances: Instances,
  work: WorkOptions = {},
  connect: ConnectOptions = {},
): Promise<HandoverStage> {
  const producer = await instances.connect(connect);
  const consumer = await instances.connect(connect);
  const { job, runs, open } = holding("work", newQueue());
  const worker = await consumer.work([job], { drainMs: 0, ...work });
  await untilHanded(producer, job, instances.millrace);
  return { producer, consumer, worker, job, runs, open };
}

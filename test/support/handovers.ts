// A producer, a worker in another instance, and what they hand over.

import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { AnyJobDefinition, Millrace } from "../../src/index.ts";
import type { EventMap } from "../../src/runtime/events.ts";
import { uuidv7 } from "../../src/runtime/uuid.ts";
import type { Handover, NewJob, Offer } from "../../src/store/store.ts";
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
  const { leaseId, offerId, channel, leaseLeftMs } = offer;
  const made: NewJob = {
    ...{ id: uuidv7(), type: "work", queueId: offer.queueIds[0] ?? 0, tenant: "default" },
    ...{ weight: 5, maxAttempts: 5, payload: '"handed"' },
    ...job,
  };
  const claimed = { claimId: randomUUID(), afterSeq: 0, jobText: null };
  const session = producer.store.producer("ready");
  const flushed = await session.flush([made], {
    notice: null,
    handover: { leaseId, offerId, channel, leaseLeftMs, ...claimed, ...options },
  });
  await session.close();
  return flushed.claimedAt === null ? null : made.id;
}

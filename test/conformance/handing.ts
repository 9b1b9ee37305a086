// A worker that offers to take jobs, and a producer that hands them over, by the store alone.

import { randomUUID } from "node:crypto";
import { afterAll } from "vitest";
import type { Handover, Listener, NewJob, Notice, Offer } from "../../src/store/store.ts";
import type { Stage } from "./stage.ts";

export const newChannel = () => `handed_${randomUUID()}`;

export function handing(stage: () => Stage) {
  const heard: Notice[] = [];
  let listener: Listener | undefined;
  const listening = async (): Promise<Listener> => {
    listener ??= await stage().store.listen((notice) => heard.push(notice));
    return listener;
  };

  /** A worker that hears, and would take any job of this queue. */
  const offering = async (queueId: number, leaseMs = 600_000): Promise<Offer> => {
    const leaseId = await stage().openLease(leaseMs);
    const offer = {
      ...{ leaseId, offerId: randomUUID(), queueIds: [queueId], types: null },
      ...{ hints: [], leaseLeftMs: 1_000, channel: newChannel(), atOnce: 100, most: 200 },
    };
    await stage().lease.offer(offer);
    await (await listening()).stand(leaseId, offer.channel);
    return offer;
  };

  const flushFor = (
    claimId: string,
    jobs: readonly NewJob[],
    offer: Offer,
    options: Partial<Handover> = {},
    places = false,
  ) => {
    const { leaseId, offerId, channel, leaseLeftMs, most } = offer;
    return stage().ready.flush(jobs, {
      notice: places ? null : stage().store.notices.ready(offer.queueIds),
      places,
      handover: {
        ...{ claimId, leaseId, offerId, channel, leaseLeftMs, most, afterSeq: 0, texts: [] },
        ...options,
      },
    });
  };

  const handAll = async (
    jobs: readonly NewJob[],
    offer: Offer,
    options: Partial<Handover> = {},
  ) => {
    const claimId = randomUUID();
    const flushed = await flushFor(claimId, jobs, offer, options);
    return { claimId, leaseId: offer.leaseId, jobId: null, made: flushed.claimedAt !== null };
  };

  /** What a flush of several shows of the worker, and whether it took them. */
  const handAndSee = async (jobs: readonly NewJob[], offer: Offer) => {
    const { claimedAt, seen } = await flushFor(randomUUID(), jobs, offer, { texts: ["x"] });
    return { made: claimedAt !== null, ...seen };
  };

  /** Where the jobs are that it did not take, for whoever has a broker. */
  const handOrPlace = async (jobs: readonly NewJob[], offer: Offer) =>
    (await flushFor(randomUUID(), jobs, offer, { texts: ["x"] }, true)).places;

  afterAll(async () => listener?.close());
  return { heard, listening, offering, handAll, handAndSee, handOrPlace };
}

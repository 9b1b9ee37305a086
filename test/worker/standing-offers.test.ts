import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { StandingOffers } from "../../src/client/standing-offers.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { Events } from "../../src/runtime/events.ts";
import type { Flushed, NewJob, Offer } from "../../src/store/store.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const job = (options: Partial<NewJob> = {}): NewJob => ({
  ...{ id: randomUUID(), type: "work", queueId: 7, tenant: "acme", weight: 5, maxAttempts: 5 },
  ...{ payload: "1", ...options },
});

const offer = (options: Partial<Offer> = {}): Offer => ({
  ...{ leaseId: randomUUID(), offerId: randomUUID(), channel: "c", leaseLeftMs: 5_000 },
  ...{ queueIds: [7], types: ["work"], hints: [{ queueId: 7, weight: 5, afterSeq: 900 }] },
  ...options,
});

const flushed = (claimed: boolean, lastSeq = 1_000): Flushed => ({
  ...{ answers: [], places: null },
  ...{ claimedAt: claimed ? new Date() : null, lastSeq: claimed ? lastSeq : null },
});

/** Offers, and how often they were read. */
function known(offers: readonly Offer[]) {
  let reads = 0;
  let fails = false;
  let now = 0;
  const standing = new StandingOffers({
    read: async () => {
      reads++;
      if (fails) throw new Error("away");
      return [...offers];
    },
    clock: { ...systemClock, monotonic: () => now },
    random: Math.random,
    events: new Events(),
  });
  const pass = async (ms: number) => {
    now += ms;
    await vi.advanceTimersByTimeAsync(ms);
  };
  return {
    standing,
    pass,
    get reads() {
      return reads;
    },
    fail: () => {
      fails = true;
    },
    read: async () => {
      standing.stored(job(), null, flushed(false));
      await pass(1_000);
    },
  };
}

test("offers are read after a lone job was stored, once a second at most, and not once it is closed", async () => {
  const offers = known([offer()]);
  expect(offers.standing.find(job())).toBeNull();
  await offers.pass(5_000);
  expect(offers.reads).toBe(0);
  for (let n = 0; n < 100; n++) {
    offers.standing.stored(job(), null, flushed(false));
    await offers.pass(10);
  }
  expect(offers.reads).toBe(1);
  expect(offers.standing.find(job())).not.toBeNull();
  for (let n = 0; n < 300; n++) {
    offers.standing.stored(job(), null, flushed(false));
    await offers.pass(10);
  }
  expect(offers.reads).toBeLessThanOrEqual(4);
  offers.standing.stored(job(), null, flushed(false));
  const { reads } = offers;
  offers.standing.close();
  await offers.pass(5_000);
  expect(offers.reads).toBe(reads);
});

test("a job goes by an offer for its queue and type, and only behind a hint", async () => {
  const fits = offer();
  const any = offer({
    queueIds: [8],
    types: null,
    hints: [{ queueId: 8, weight: 5, afterSeq: 3 }],
  });
  const offers = known([fits, any, offer({ queueIds: [9], hints: [] })]);
  await offers.read();
  expect(offers.standing.find(job())).toMatchObject({ leaseId: fits.leaseId, afterSeq: 900 });
  expect(offers.standing.find(job({ type: "other" }))).toBeNull();
  expect(offers.standing.find(job({ weight: 0 }))).toBeNull();
  expect(offers.standing.find(job({ queueId: 9 }))).toBeNull();
  const other = offers.standing.find(job({ type: "other", queueId: 8 }));
  expect(other).toMatchObject({ leaseId: any.leaseId, offerId: any.offerId });
});

test("the job goes along if it is short enough", async () => {
  const offers = known([offer()]);
  await offers.read();
  expect(offers.standing.find(job())?.jobText).toContain("acme");
  const umlauts = JSON.stringify("ü".repeat(4_000));
  expect(offers.standing.find(job({ payload: umlauts }))?.jobText).toBeNull();
});

test("what was handed over moves the hint, after a while", async () => {
  const offers = known([offer()]);
  await offers.read();
  for (let n = 1; n <= 3; n++) {
    const handover = offers.standing.find(job());
    offers.standing.stored(job(), handover, flushed(true, 1_000 * n));
    await offers.pass(150);
  }
  expect(offers.standing.find(job())?.afterSeq).toBe(1_000);
});

test("an offer that was refused is forgotten, the others are not; a read that fails forgets all", async () => {
  const both = [offer(), offer()];
  const offers = known(both);
  await offers.read();
  const first = offers.standing.find(job());
  offers.standing.stored(job(), first, flushed(false));
  const second = offers.standing.find(job());
  expect(new Set([first?.leaseId, second?.leaseId]).size).toBe(2);
  offers.standing.stored(job(), second, flushed(false));
  expect(offers.standing.find(job())).toBeNull();
  await offers.pass(1_000);
  await offers.read();
  expect(offers.standing.find(job())).not.toBeNull();
  offers.fail();
  await offers.pass(1_000);
  await offers.read();
  expect(offers.standing.find(job())).toBeNull();
});

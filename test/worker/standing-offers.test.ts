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
const lone = (options: Partial<NewJob> = {}) => [job(options)];
const several = (count: number, options: Partial<NewJob> = {}) =>
  Array.from({ length: count }, () => job(options));

const offer = (options: Partial<Offer> = {}): Offer => ({
  ...{ leaseId: randomUUID(), offerId: randomUUID(), channel: "c", leaseLeftMs: 5_000 },
  ...{ atOnce: 100, most: 200 },
  ...{ queueIds: [7], types: ["work"], hints: [{ queueId: 7, weight: 5, afterSeq: 900 }] },
  ...options,
});

const flushed = (claimed: boolean, lastSeq = 1_000): Flushed => ({
  ...{ answers: [], places: null },
  ...{ claimedAt: claimed ? new Date() : null, lastSeq: claimed ? lastSeq : null },
});
const seen = (claimed: boolean, held: number, behindMs: number | null = null): Flushed => ({
  ...flushed(claimed),
  seen: { held, behindMs },
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
      standing.stored(lone(), null, flushed(false));
      await pass(1_000);
    },
  };
}

test("offers are read after jobs were stored, once a second at most, and not once it is closed", async () => {
  const offers = known([offer()]);
  expect(offers.standing.find(lone())).toBeNull();
  await offers.pass(5_000);
  expect(offers.reads).toBe(0);
  offers.standing.stored(lone(), null, flushed(false));
  await offers.pass(100);
  expect(offers.reads).toBe(1);
  expect(offers.standing.find(lone())).not.toBeNull();
  for (let n = 0; n < 300; n++) {
    offers.standing.stored(lone(), offers.standing.find(lone()), flushed(true));
    await offers.pass(10);
  }
  expect(offers.reads).toBeLessThanOrEqual(4);
  offers.standing.stored(lone(), null, flushed(false));
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
  expect(offers.standing.find(lone())).toMatchObject({ leaseId: fits.leaseId, afterSeq: 900 });
  expect(offers.standing.find(lone({ type: "other" }))).toBeNull();
  expect(offers.standing.find(lone({ weight: 0 }))).toBeNull();
  expect(offers.standing.find(lone({ expiresInMs: 1_000 }))).toBeNull();
  expect(offers.standing.find(lone({ queueId: 9 }))).toBeNull();
  const other = offers.standing.find(lone({ type: "other", queueId: 8 }));
  expect(other).toMatchObject({ leaseId: any.leaseId, offerId: any.offerId });
});

test("the job goes along if it is short enough", async () => {
  const offers = known([offer()]);
  await offers.read();
  expect(offers.standing.find(lone())?.texts[0]).toContain("acme");
  const umlauts = JSON.stringify("ü".repeat(4_000));
  expect(offers.standing.find(lone({ payload: umlauts }))?.texts).toEqual([]);
});

test("what was handed over moves the hint, after a while", async () => {
  const offers = known([offer()]);
  await offers.read();
  for (let n = 1; n <= 3; n++) {
    const handover = offers.standing.find(lone());
    offers.standing.stored(lone(), handover, flushed(true, 1_000 * n));
    await offers.pass(150);
  }
  expect(offers.standing.find(lone())?.afterSeq).toBe(3_000);
  const handover = offers.standing.find(lone());
  offers.standing.stored(lone(), handover, flushed(true, 4_000));
  await offers.pass(20);
  expect(offers.standing.find(lone())?.afterSeq).toBe(3_000);
});

test("an offer that was refused is forgotten, the others are not; a read that fails forgets all", async () => {
  const both = [offer(), offer()];
  const offers = known(both);
  await offers.read();
  const first = offers.standing.find(lone());
  offers.standing.stored(lone(), first, flushed(false));
  const second = offers.standing.find(lone());
  expect(new Set([first?.leaseId, second?.leaseId]).size).toBe(2);
  offers.standing.stored(lone(), second, flushed(false));
  expect(offers.standing.find(lone())).toBeNull();
  await offers.pass(1_000);
  await offers.read();
  expect(offers.standing.find(lone())).not.toBeNull();
  offers.fail();
  await offers.pass(1_000);
  await offers.read();
  expect(offers.standing.find(lone())).toBeNull();
});

test("the only offer is tried again after a pause that grows while it is refused", async () => {
  const offers = known([offer()]);
  await offers.read();
  const pauses: number[] = [];
  for (let n = 0; n < 8; n++) {
    offers.standing.stored(lone(), offers.standing.find(lone()), flushed(false));
    let paused = 0;
    for (; offers.standing.find(lone()) === null; paused += 10) await offers.pass(10);
    pauses.push(paused);
  }
  expect(pauses).toEqual([10, 20, 40, 80, 160, 320, 320, 320]);
  offers.standing.stored(lone(), offers.standing.find(lone()), flushed(true));
  expect(offers.standing.find(lone())).not.toBeNull();
});

test("several jobs go together if they are alike and somebody would take so many", async () => {
  const offers = known([offer()]);
  await offers.read();
  const { standing } = offers;
  expect(standing.find(several(100))).toMatchObject({ afterSeq: 900, most: 200 });
  expect(standing.find(several(101))).toBeNull();
  expect(standing.find([...several(3), job({ tenant: "other" })])).toBeNull();
  expect(standing.find([...several(3), job({ correlationId: "c" })])).toBeNull();
  expect(standing.find(several(3, { maxRuntimeMs: 5 }))).toBeNull();
  expect(standing.find(several(3, { type: "other" }))).toBeNull();
  expect(standing.find(several(30, { payload: JSON.stringify("x".repeat(1_000)) }))).toBeNull();
  const texts = standing.find(several(100))?.texts ?? [];
  expect(texts.length).toBe(1);
});

test("a stream waits for a worker that is about to be full; a few jobs do not", async () => {
  const offers = known([offer()]);
  await offers.read();
  const { standing } = offers;
  const send = (held: number) =>
    standing.stored(several(50), standing.find(several(50)), seen(true, held));
  expect(standing.waitMs(several(50))).toBe(0);
  send(150);
  await offers.pass(10);
  expect(standing.waitMs(several(50))).toBe(0);
  send(180);
  expect(standing.waitMs(several(50))).toBeCloseTo(15);
  expect(standing.waitMs(lone())).toBe(0);
  expect(standing.waitMs(several(50, { type: "other" }))).toBe(0);
  await offers.pass(15);
  expect(standing.waitMs(several(50))).toBe(0);
  send(200);
  expect(standing.waitMs(several(9))).toBeGreaterThan(0);
  expect(standing.waitMs(several(8))).toBe(0);
});

test("of two workers the one with room is chosen, and nobody is waited for", async () => {
  const [full, free] = [offer(), offer()];
  const offers = known([full, free]);
  await offers.read();
  const { standing } = offers;
  const found = standing.find(several(50));
  standing.stored(several(50), found, seen(true, 200));
  expect(standing.waitMs(several(50))).toBe(0);
  const next = Array.from({ length: 20 }, () => standing.find(several(50))?.leaseId);
  expect(new Set(next)).toEqual(
    new Set([found?.leaseId === full.leaseId ? free.leaseId : full.leaseId]),
  );
});

test("a worker that has just fallen behind is waited for once, and then left alone for longer and longer", async () => {
  const offers = known([offer()]);
  await offers.read();
  const { standing } = offers;
  const refuse = (behindMs: number) =>
    standing.stored(several(50), standing.find(several(50)), seen(false, 10, behindMs));
  refuse(8);
  expect(standing.waitMs(several(50))).toBe(8);
  expect(standing.find(several(50))).not.toBeNull();
  await offers.pass(8);
  refuse(8);
  expect(standing.waitMs(several(50))).toBe(0);
  expect(standing.find(several(50))).toBeNull();
  await offers.pass(10);
  expect(standing.find(several(50))).not.toBeNull();
  refuse(8);
  await offers.pass(8);
  refuse(8);
  await offers.pass(10);
  expect(standing.find(several(50))).toBeNull();
  await offers.pass(10);
  refuse(500);
  expect(standing.waitMs(several(50))).toBe(0);
  expect(standing.find(several(50))).toBeNull();
});

test("offers are asked for a few times more when nothing came of it, and then left alone", async () => {
  const offers = known([]);
  offers.standing.stored(lone(), null, flushed(false));
  await offers.pass(60_000);
  expect(offers.reads).toBe(5);
});

import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { MillraceError } from "../../src/domain/errors.ts";
import { createSchedule, lastSlots, nextSlot, slotsBetween } from "../../src/domain/schedule.ts";
import { scheduleCases } from "./schedule-cases.ts";

const utc = (text: string) => new Date(`${text}Z`);

describe("the next slots of an expression", () => {
  it.each(scheduleCases)("$zone $cron after $after: $says", ({ cron, zone, after, slots }) => {
    const schedule = createSchedule(cron, zone);
    const found: (Date | null)[] = [];
    for (let at: Date | null = utc(after); at !== null && found.length < slots.length; ) {
      at = nextSlot(schedule, at);
      found.push(at);
    }
    expect(found).toEqual(slots.map(utc));
  });

  it("has a case for every rule of the pages", () => {
    expect(scheduleCases.length).toBeGreaterThanOrEqual(60);
  });

  it.each(["0 0 30 2 *", "0 0 31 4,6,9,11 *"])("%s never comes", (cron) => {
    expect(nextSlot(createSchedule(cron, "UTC"), utc("2026-01-01T00:00"))).toBeNull();
  });
});

describe("slots that are far apart", () => {
  it("come without a look at every day in between", () => {
    let looks = 0;
    const { cron, zone } = createSchedule("30 2 29 2 *", "Europe/Berlin");
    const counted = { ...zone, offsetAt: (at: number) => zone.offsetAt(at) + 0 * ++looks };
    const slots = slotsBetween(
      { cron, zone: counted },
      utc("2026-01-01T00:00"),
      utc("3000-01-01T00:00"),
      200,
    );
    expect(slots).toHaveLength(200);
    expect(slots.slice(0, 2)).toEqual([utc("2028-02-29T01:30"), utc("2032-02-29T01:30")]);
    expect(looks).toBeLessThan(200 * 40);
  });

  it("may be forty years apart", () => {
    const schedule = createSchedule("0 0 * 2 MON#5", "UTC");
    expect(slotsBetween(schedule, utc("2060-01-01T00:00"), utc("2120-01-01T00:00"), 9)).toEqual([
      utc("2072-02-29T00:00"),
      utc("2112-02-29T00:00"),
    ]);
  });
});

describe("what is not understood is refused", () => {
  const wrong = `* * * *|* * * * * * *|60 * * * *|* 24 * * *|* * 0 * *|* * 32 * *|* * * 13 *|* * * * 8
    |5-1 * * * *|*/0 * * * *|a * * * *|1-2-3 * * * *|1/2/3 * * * *|* * * * 1#6|* * * * L|* * * FOO *
    |-1 * * * *|1,,2 * * * *|@reboot|1.5 * * * *|?/2 * * * *|* * L-2 * *`;
  it.each(["", ...wrong.split("|").map((cron) => cron.trim())])("%s", (cron) => {
    expect(codeOf(() => createSchedule(cron, "UTC"))).toBe("SCHEDULE_INVALID");
  });

  it.each(["", "Europe/Atlantis", "+02:00", "local"])("the zone %s", (zone) => {
    expect(codeOf(() => createSchedule("* * * * *", zone))).toBe("SCHEDULE_INVALID");
  });
});

const zones = ["UTC", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "Asia/Kathmandu"];
const crons = ["*/7 * * * *", "30 2 * * *", "0 */5 * * *", "15 0,1,2,3,23 * * *", "0 0 L * *"];

test("slots do not depend on where the search began", () => {
  const instant = fc.integer({ min: Date.UTC(2024, 0), max: Date.UTC(2030, 0) });
  const [zone, cron] = [fc.constantFrom(...zones), fc.constantFrom(...crons)];
  const step = fc.integer({ min: 0, max: 3 * 86_400_000 });
  fc.assert(
    fc.property(zone, cron, instant, step, (name, expression, from, ms) => {
      const schedule = createSchedule(expression, name);
      const first = nextSlot(schedule, new Date(from));
      if (first === null) return false;
      const between = new Date(Math.min(from + ms, first.getTime() - 1));
      return nextSlot(schedule, between)?.getTime() === first.getTime();
    }),
    { numRuns: 300 },
  );
});

test("the last slots are the end of all slots, found from the other side", () => {
  const schedule = createSchedule("*/5 * * * *", "America/New_York");
  const [after, until] = [utc("2026-10-31T20:00"), utc("2026-11-01T09:01")];
  const all = slotsBetween(schedule, after, until, Number.POSITIVE_INFINITY);
  expect(all).toHaveLength(156);
  for (const count of [1, 7, 156, 500]) {
    expect(lastSlots(schedule, after, until, count)).toEqual(all.slice(-count));
  }
});

function codeOf(body: () => unknown): string {
  try {
    body();
  } catch (error) {
    if (error instanceof MillraceError) return error.code;
    throw error;
  }
  return "nothing was thrown";
}

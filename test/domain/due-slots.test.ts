import { describe, expect, it } from "vitest";
import { dueSlots, type MissedSlots } from "../../src/domain/due-slots.ts";
import { createSchedule } from "../../src/domain/schedule.ts";

const utc = (text: string) => new Date(`2026-${text}Z`);

interface Case {
  readonly says: string;
  readonly policy: MissedSlots | `all ${number}`;
  readonly cron: string;
  /** What was dealt with last, and now; without the year. */
  readonly after: string;
  readonly now: string;
  readonly slots: string;
  readonly missedFrom: string;
  readonly next: string;
}

const row = (line: string): Case => {
  const [
    says = "",
    policy = "",
    cron = "",
    after = "",
    now = "",
    slots = "",
    missedFrom = "",
    next = "",
  ] = line.split("|").map((part) => part.trim());
  return { says, policy: policy as MissedSlots, cron, after, now, slots, missedFrom, next };
};

const cases = `
nothing is due                     | skip  | 0 * * * * | 01-01T10:00 | 01-01T10:59:59 |             |             | 01-01T11:00
on time                            | skip  | 0 * * * * | 01-01T10:00 | 01-01T11:00    | 01-01T11:00 |             | 01-01T12:00
late by less than a minute         | skip  | 0 * * * * | 01-01T10:00 | 01-01T11:00:59 | 01-01T11:00 |             | 01-01T12:00
late by a minute is missed         | skip  | 0 * * * * | 01-01T10:00 | 01-01T11:01    |             | 01-01T11:00 | 01-01T12:00
a day is skipped                   | skip  | 0 * * * * | 01-01T10:00 | 01-02T10:30    |             | 01-01T11:00 | 01-02T11:00
skipped, and the current one fires | skip  | 0 * * * * | 01-01T10:00 | 01-02T11:00:10 | 01-02T11:00 | 01-01T11:00 | 01-02T12:00
the last of a day                  | last  | 0 * * * * | 01-01T10:00 | 01-02T10:30    | 01-02T10:00 | 01-01T11:00 | 01-02T11:00
the only one missed                | last  | 0 * * * * | 01-01T10:00 | 01-01T11:30    | 01-01T11:00 |             | 01-01T12:00
the last one is on time            | last  | 0 * * * * | 01-01T10:00 | 01-02T11:00:10 | 01-02T11:00 | 01-01T11:00 | 01-02T12:00
last, with nothing missed          | last  | 0 * * * * | 01-01T10:00 | 01-01T10:30    |             |             | 01-01T11:00
all of three hours                 | all   | 0 * * * * | 01-01T10:00 | 01-01T13:30    | 01-01T11:00 01-01T12:00 01-01T13:00 | | 01-01T14:00
all, the last of them on time      | all   | 0 * * * * | 01-01T10:00 | 01-01T13:00:10 | 01-01T11:00 01-01T12:00 01-01T13:00 | | 01-01T14:00
all up to a bound: the latest      | all 2 | 0 * * * * | 01-01T10:00 | 01-02T10:30    | 01-02T09:00 01-02T10:00 | 01-01T11:00 | 01-02T11:00
the bound is not reached           | all 9 | 0 * * * * | 01-01T10:00 | 01-01T12:30    | 01-01T11:00 01-01T12:00 |  | 01-01T13:00
on time does not count as missed   | all 1 | 0 * * * * | 01-01T10:00 | 01-01T13:00:10 | 01-01T12:00 01-01T13:00 | 01-01T11:00 | 01-01T14:00
seconds: all of the last minute    | skip  | */20 * * * * * | 01-01T10:00 | 01-01T10:01 | 01-01T10:00:20 01-01T10:00:40 01-01T10:01 | | 01-01T10:01:20
seconds after an hour              | last  | */30 * * * * * | 01-01T10:00 | 01-01T11:00:05 | 01-01T10:59:30 01-01T11:00 | 01-01T10:00:30 | 01-01T11:00:30
every second after half a year     | all 2 | * * * * * *    | 01-01T10:00 | 06-01T10:00 | 06-01T09:58:59 06-01T09:59 ... | 01-01T10:00:01 | 06-01T10:00:01
restart in mid-slot: it was done   | all   | 0 * * * * | 01-01T11:00 | 01-01T11:00:20 |             |             | 01-01T12:00
the clock went back                | all   | 0 * * * * | 01-01T11:00:30 | 01-01T10:59 |             |             | 01-01T11:00
a monthly slot long ago            | last  | 0 0 1 * * | 01-02T00:00 | 06-20T00:00    | 06-01T00:00 | 02-01T00:00 | 07-01T00:00
a monthly slot long ago, all       | all   | 0 0 1 * * | 03-02T00:00 | 06-20T00:00    | 04-01T00:00 05-01T00:00 06-01T00:00 | | 07-01T00:00
`
  .trim()
  .split("\n")
  .map(row);

describe("slots that are due", () => {
  it.each(cases)("$policy, $cron, done until $after, now $now: $says", (one) => {
    const [name, bound] = one.policy.split(" ");
    const policy = { missedSlots: name as MissedSlots, maxCatchUp: Number(bound ?? 100) };
    const schedule = createSchedule(one.cron, "UTC");
    const due = dueSlots(schedule, { after: utc(one.after), now: utc(one.now) }, policy);
    const wanted = one.slots.split(" ").filter((slot) => slot !== "");
    // "..." stands for the seconds of the last minute, which are on time.
    const shown = wanted.at(-1) === "..." ? due.slots.slice(0, wanted.length - 1) : due.slots;
    expect(shown).toEqual(wanted.filter((slot) => slot !== "...").map(utc));
    expect(due.missedFrom).toEqual(one.missedFrom === "" ? null : utc(one.missedFrom));
    expect(due.next).toEqual(utc(one.next));
  });

  it("misses nothing while the runner is busy, however long", () => {
    const schedule = createSchedule("0 11 * * *", "UTC");
    const [after, now] = [utc("01-01T10:00"), utc("01-01T11:10")];
    const policy = { missedSlots: "skip", maxCatchUp: 100 } as const;
    const busy = dueSlots(schedule, { after, now, seenAt: utc("01-01T11:00:01") }, policy);
    expect(busy).toMatchObject({ slots: [utc("01-01T11:00")], missedFrom: null });
    const absent = dueSlots(schedule, { after, now, seenAt: utc("01-01T11:09") }, policy);
    expect(absent).toMatchObject({ slots: [], missedFrom: utc("01-01T11:00") });
  });

  it("knows the zone's changes when it catches up", () => {
    const schedule = createSchedule("30 1 * * *", "America/New_York");
    const span = { after: utc("10-30T12:00"), now: utc("11-03T00:00") };
    const { slots } = dueSlots(schedule, span, { missedSlots: "all", maxCatchUp: 10 });
    expect(slots).toEqual(["10-31T05:30", "11-01T05:30", "11-02T06:30"].map(utc));
  });
});

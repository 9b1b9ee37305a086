// When expressions fire, worked out by hand from the zones' published changes and compared with croner 11
// and cron-parser 5 wherever their rules are ours. A line says what it is about, the expression, from when
// on, and the slots in a row; all times are UTC.

export interface ScheduleCase {
  readonly zone: string;
  readonly says: string;
  readonly cron: string;
  readonly after: string;
  readonly slots: readonly string[];
}

const table = (zone: string, lines: string): ScheduleCase[] =>
  lines
    .trim()
    .split("\n")
    .map((line) => {
      const [says = "", cron = "", after = "", slots = ""] = line
        .split("|")
        .map((part) => part.trim());
      return { zone, says, cron, after, slots: slots.split(" ") };
    });

export const scheduleCases: readonly ScheduleCase[] = [
  ...table(
    "UTC",
    `
every minute                          | * * * * *        | 2026-01-01T00:00        | 2026-01-01T00:01 2026-01-01T00:02
every 10 s                            | */10 * * * * *   | 2026-01-01T00:00:55     | 2026-01-01T00:01 2026-01-01T00:01:10
seconds first                         | 30 15 10 * * *   | 2026-05-05T00:00        | 2026-05-05T10:15:30 2026-05-06T10:15:30
not the instant itself                | 0 0 * * *        | 2026-01-01T00:00        | 2026-01-02T00:00
a millisecond before                  | 0 0 * * *        | 2025-12-31T23:59:59.999 | 2026-01-01T00:00
a millisecond after                   | 0 0 * * *        | 2026-01-01T00:00:00.001 | 2026-01-02T00:00
weekdays by name                      | 0 9 * * MON-FRI  | 2026-01-02T09:00        | 2026-01-05T09:00 2026-01-06T09:00
7 is Sunday                           | 0 0 * * 7        | 2026-01-01T00:00        | 2026-01-04T00:00 2026-01-11T00:00
0 is Sunday                           | 0 0 * * 0        | 2026-01-01T00:00        | 2026-01-04T00:00 2026-01-11T00:00
the weekend to 7                      | 0 0 * * 6-7      | 2026-01-01T00:00        | 2026-01-03T00:00 2026-01-04T00:00 2026-01-10T00:00
names in small letters                | 0 0 * jan mon    | 2026-01-20T00:00        | 2026-01-26T00:00 2027-01-04T00:00
the first of the month                | 0 0 1 * *        | 2026-01-01T00:00        | 2026-02-01T00:00 2026-03-01T00:00
only months with 31 days              | 0 0 31 * *       | 2026-01-31T00:00        | 2026-03-31T00:00 2026-05-31T00:00 2026-07-31T00:00 2026-08-31T00:00
the last day                          | 0 0 L * *        | 2026-01-31T00:00        | 2026-02-28T00:00 2026-03-31T00:00 2026-04-30T00:00
a day and the last                    | 0 0 15,L * *     | 2026-02-01T00:00        | 2026-02-15T00:00 2026-02-28T00:00 2026-03-15T00:00
the last Friday is the 31st           | 0 12 * * FRIL    | 2026-07-01T00:00        | 2026-07-31T12:00 2026-08-28T12:00
the last Friday                       | 0 12 * * 5L      | 2026-01-01T00:00        | 2026-01-30T12:00 2026-02-27T12:00
the first Monday                      | 0 8 * * 1#1      | 2026-01-01T00:00        | 2026-01-05T08:00 2026-02-02T08:00 2026-03-02T08:00
the fifth Tuesday, where there is one | 0 8 * * TUE#5    | 2026-01-01T00:00        | 2026-03-31T08:00 2026-06-30T08:00
either day field                      | 0 0 13 * 5       | 2026-02-01T00:00        | 2026-02-06T00:00 2026-02-13T00:00 2026-02-20T00:00
? says nothing about the weekday      | 0 0 13 * ?       | 2026-02-01T00:00        | 2026-02-13T00:00 2026-03-13T00:00
? says nothing about the day          | 0 0 ? * FRI      | 2026-02-01T00:00        | 2026-02-06T00:00 2026-02-13T00:00
lists and steps                       | 5,35 */6 * * *   | 2026-01-01T00:00        | 2026-01-01T00:05 2026-01-01T00:35 2026-01-01T06:05
a stepped range                       | 0 8-18/5 * * *   | 2026-01-01T00:00        | 2026-01-01T08:00 2026-01-01T13:00 2026-01-01T18:00 2026-01-02T08:00
a step from a number on               | 10/20 * * * *    | 2026-01-01T00:00        | 2026-01-01T00:10 2026-01-01T00:30 2026-01-01T00:50 2026-01-01T01:10
quarters                              | 0 0 1 */3 *      | 2026-01-01T00:00        | 2026-04-01T00:00 2026-07-01T00:00 2026-10-01T00:00 2027-01-01T00:00
the year's last second                | 59 59 23 31 12 * | 2026-06-01T00:00        | 2026-12-31T23:59:59 2027-12-31T23:59:59
@hourly                               | @hourly          | 2026-01-01T00:30        | 2026-01-01T01:00 2026-01-01T02:00
@daily                                | @daily           | 2026-01-01T00:30        | 2026-01-02T00:00
@weekly                               | @weekly          | 2026-01-01T00:30        | 2026-01-04T00:00
@monthly                              | @monthly         | 2026-01-01T00:30        | 2026-02-01T00:00
@yearly                               | @yearly          | 2026-01-01T00:30        | 2027-01-01T00:00
the 29th of February                  | 0 0 29 2 *       | 2026-01-01T00:00        | 2028-02-29T00:00 2032-02-29T00:00
2100 is no leap year                  | 0 0 29 2 *       | 2096-03-01T00:00        | 2104-02-29T00:00
the last of February                  | 0 0 L 2 *        | 2026-01-01T00:00        | 2026-02-28T00:00 2027-02-28T00:00 2028-02-29T00:00
the day after the leap day            | 0 0 1 3 *        | 2028-02-29T12:00        | 2028-03-01T00:00
`,
  ),
  // 2026-03-08: 02:00 becomes 03:00 at 07:00 UTC. 2026-11-01: 02:00 becomes 01:00 at 06:00 UTC.
  ...table(
    "America/New_York",
    `
a leap day starts later there                | 0 0 29 2 *      | 2026-01-01T00:00    | 2028-02-29T05:00
a skipped time fires after the gap           | 30 2 * * *      | 2026-03-07T12:00    | 2026-03-08T07:00 2026-03-09T06:30
skipped times fire once together             | 0,30 2 * * *    | 2026-03-07T12:00    | 2026-03-08T07:00 2026-03-09T06:00 2026-03-09T06:30
a skipped one beside a real one              | 30 2,3 * * *    | 2026-03-07T12:00    | 2026-03-08T07:00 2026-03-08T07:30 2026-03-09T06:30
a skipped one on the first real time         | 0 2,3 * * *     | 2026-03-07T12:00    | 2026-03-08T07:00 2026-03-09T06:00 2026-03-09T07:00
skipped seconds                              | */20 30 2 * * * | 2026-03-07T12:00    | 2026-03-08T07:00 2026-03-09T06:30 2026-03-09T06:30:20
asked at the change itself                   | 30 2 * * *      | 2026-03-08T07:00    | 2026-03-09T06:30
asked a second before the change             | 30 2 * * *      | 2026-03-08T06:59:59 | 2026-03-08T07:00
before the gap                               | 30 1 * * *      | 2026-03-07T12:00    | 2026-03-08T06:30 2026-03-09T05:30
right after the gap                          | 0 3 * * *       | 2026-03-07T12:00    | 2026-03-08T07:00 2026-03-09T07:00
elapsed half hours across the gap            | */30 * * * *    | 2026-03-08T06:00    | 2026-03-08T06:30 2026-03-08T07:00 2026-03-08T07:30
each hour's half across the gap              | 30 * * * *      | 2026-03-08T06:00    | 2026-03-08T06:30 2026-03-08T07:30 2026-03-08T08:30
every second hour, one of them skipped       | 0 */2 * * *     | 2026-03-08T05:00    | 2026-03-08T08:00 2026-03-08T10:00
all 24 hours by name                         | 30 0-23 * * *   | 2026-03-08T06:00    | 2026-03-08T06:30 2026-03-08T07:30
a time that comes twice fires the first time | 30 1 * * *      | 2026-10-31T12:00    | 2026-11-01T05:30 2026-11-02T06:30
asked between the two                        | 30 1 * * *      | 2026-11-01T05:45    | 2026-11-02T06:30
asked in the second pass                     | 30 1 * * *      | 2026-11-01T06:10    | 2026-11-02T06:30
asked at the change back                     | 0 1 * * *       | 2026-11-01T05:59:59 | 2026-11-02T06:00
after the repeated hour                      | 0 2 * * *       | 2026-10-31T12:00    | 2026-11-01T07:00 2026-11-02T07:00
one in the repeated hour, one after          | 0 1,2 * * *     | 2026-10-31T12:00    | 2026-11-01T05:00 2026-11-01T07:00
elapsed half hours through it                | */30 * * * *    | 2026-11-01T05:00    | 2026-11-01T05:30 2026-11-01T06:00 2026-11-01T06:30 2026-11-01T07:00
each hour's quarter through it               | 15 * * * *      | 2026-11-01T05:00    | 2026-11-01T05:15 2026-11-01T06:15 2026-11-01T07:15
every second hour through it                 | 0 */2 * * *     | 2026-11-01T04:00    | 2026-11-01T07:00 2026-11-01T09:00
`,
  ),
  ...table(
    "Asia/Kolkata",
    `
+05:30 | 0 9 * * * | 2026-01-01T00:00 | 2026-01-01T03:30 2026-01-02T03:30
`,
  ),
  ...table(
    "Asia/Kathmandu",
    `
+05:45 | 0 0 * * * | 2026-01-01T00:00 | 2026-01-01T18:15
`,
  ),
  ...table(
    "Pacific/Kiritimati",
    `
+14:00, a day ahead | 0 0 1 1 * | 2026-06-01T00:00 | 2026-12-31T10:00
`,
  ),
  ...table(
    "Pacific/Pago_Pago",
    `
-11:00 | 0 18 L * * | 2026-01-01T00:00 | 2026-01-01T05:00 2026-02-01T05:00
`,
  ),
  ...table(
    "America/Phoenix",
    `
no daylight saving | 30 2 * * * | 2026-03-08T00:00 | 2026-03-08T09:30 2026-03-09T09:30
`,
  ),
  // 2026-03-29: 02:00 becomes 03:00 at 01:00 UTC. 2026-10-25: 03:00 becomes 02:00 at 01:00 UTC.
  ...table(
    "Europe/Berlin",
    `
spring                               | 30 2 * * *  | 2026-03-28T12:00 | 2026-03-29T01:00 2026-03-30T00:30
autumn                               | 30 2 * * *  | 2026-10-24T12:00 | 2026-10-25T00:30 2026-10-26T01:30
an even hour comes twice             | 0 */2 * * * | 2026-10-24T23:00 | 2026-10-25T00:00 2026-10-25T01:00 2026-10-25T03:00
a date that is the day of the change | 0 2 29 3 *  | 2026-01-01T00:00 | 2026-03-29T01:00 2027-03-29T00:00
`,
  ),
  // 2026-03-29: 01:00 becomes 02:00 at 01:00 UTC. 2026-10-25: 02:00 becomes 01:00 at 01:00 UTC.
  ...table(
    "Europe/London",
    `
spring | 15 1 * * * | 2026-03-28T12:00 | 2026-03-29T01:00 2026-03-30T00:15
autumn | 15 1 * * * | 2026-10-24T12:00 | 2026-10-25T00:15 2026-10-26T01:15
`,
  ),
  // Half an hour. 2026-10-04: 02:00 becomes 02:30 at 15:30 UTC of the 3rd. 2026-04-05: back to 01:30.
  ...table(
    "Australia/Lord_Howe",
    `
a gap of half an hour | 15 2 * * *   | 2026-10-03T00:00 | 2026-10-03T15:30 2026-10-04T15:15
half an hour twice    | 45 1 * * *   | 2026-04-04T00:00 | 2026-04-04T14:45 2026-04-05T15:15
quarters through it   | */15 * * * * | 2026-04-04T14:30 | 2026-04-04T14:45 2026-04-04T15:00 2026-04-04T15:15
`,
  ),
  // 2026-04-05: 03:00 becomes 02:00. 2026-10-04: 02:00 becomes 03:00. Both at 16:00 UTC of the day before.
  ...table(
    "Australia/Sydney",
    `
autumn is in April   | 30 2 * * * | 2026-04-04T00:00 | 2026-04-04T15:30 2026-04-05T16:30
spring is in October | 30 2 * * * | 2026-10-03T00:00 | 2026-10-03T16:00 2026-10-04T15:30
`,
  ),
  // At midnight: 2026-04-24 has no 00:00, 2026-10-29 has 23:30 twice.
  ...table(
    "Africa/Cairo",
    `
midnight is skipped      | 0 0 * * *   | 2026-04-23T00:00 | 2026-04-23T22:00 2026-04-24T21:00
the last half hour twice | 30 23 * * * | 2026-10-29T12:00 | 2026-10-29T20:30 2026-10-30T21:30
`,
  ),
  // It had no 30 December 2011 at all.
  ...table(
    "Pacific/Apia",
    `
a whole day is skipped | 0 12 30 12 * | 2011-12-01T00:00 | 2011-12-30T10:00 2012-12-29T22:00
`,
  ),
];

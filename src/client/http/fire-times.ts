// When a cron trigger will fire, worked out where it is shown: the same rules as the trigger runner's.

import { createSchedule, nextSlot } from "../../domain/schedule.ts";

/** The next slots after `after`; throws SCHEDULE_INVALID with the reason. */
export function nextFireTimes(cron: string, timeZone: string, after: Date, count: number): Date[] {
  const schedule = createSchedule(cron, timeZone);
  const times: Date[] = [];
  for (let from: Date = after; times.length < count; ) {
    const next = nextSlot(schedule, from);
    if (next === null) break;
    times.push(next);
    from = next;
  }
  return times;
}

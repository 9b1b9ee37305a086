import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import { Loop } from "../runtime/loop.ts";
import type { UpkeepSession } from "../store/store.ts";

export interface SchedulerOptions {
  readonly session: UpkeepSession;
  readonly floorMs: number;
  readonly batch: number;
  readonly onReady: (queueIds: readonly number[]) => void;
  readonly clock: Clock;
  readonly random: () => number;
  readonly events: Events;
}

/** Makes due jobs ready. Sleeps until the next one is due; any number of processes may run it. */
export function createScheduler(options: SchedulerOptions): Loop {
  const { session, batch, onReady } = options;
  return new Loop({
    ...options,
    name: "scheduler",
    intervalMs: options.floorMs,
    run: async () => {
      let processed = 0;
      for (;;) {
        const { promoted, queueIds } = await session.promote(batch);
        processed += promoted;
        if (queueIds.length > 0) onReady(queueIds);
        if (promoted < batch) break;
      }
      const nextMs = await session.waitForDue();
      return nextMs === null ? { processed } : { processed, nextMs: Math.ceil(nextMs) };
    },
  });
}

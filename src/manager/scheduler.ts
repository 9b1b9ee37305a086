import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import { Loop } from "../runtime/loop.ts";
import type { UpkeepSession } from "../store/store.ts";

export interface SchedulerOptions {
  readonly session: UpkeepSession;
  readonly floorMs: number;
  readonly batch: number;
  /** False while this is somebody else's to do. */
  readonly isWanted: () => Promise<boolean>;
  readonly onReady: (queueIds: readonly number[]) => void;
  readonly clock: Clock;
  readonly random: () => number;
  readonly events: Events;
}

/** Makes due jobs ready. Sleeps until the next one is due; any number of processes may run it. */
export function createScheduler(options: SchedulerOptions): Loop {
  const { session, batch, isWanted, onReady, events } = options;
  return new Loop({
    ...options,
    name: "scheduler",
    intervalMs: options.floorMs,
    run: async () => {
      if (!(await isWanted())) return { processed: 0 };
      let processed = 0;
      for (;;) {
        const { promoted, queueIds, latenessMs } = await session.promote(batch);
        processed += promoted;
        if (promoted > 0) events.emit("jobs.promoted", { jobs: promoted, latenessMs });
        if (queueIds.length > 0) onReady(queueIds);
        if (promoted < batch) break;
      }
      const nextMs = await session.waitForDue();
      return nextMs === null ? { processed } : { processed, nextMs: Math.ceil(nextMs) };
    },
  });
}

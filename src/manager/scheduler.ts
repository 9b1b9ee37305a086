import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import { Loop, type LoopReport } from "../runtime/loop.ts";
import type { Service } from "../runtime/service.ts";
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

export interface Scheduler extends Service {
  readonly report: LoopReport;
  wake(): void;
  /** A job falls due in so long: it wakes if it meant to sleep longer than that. */
  due(delayMs: number): void;
}

/** Makes due jobs ready. Sleeps until the next one is due; any number of processes may run it. */
export function createScheduler(options: SchedulerOptions): Scheduler {
  const { session, batch, isWanted, onReady, clock, events, floorMs } = options;
  /** When it looks next at the latest; never, while it looks and cannot know yet. */
  let plannedAt = Number.POSITIVE_INFINITY;

  async function promoteAll(): Promise<number> {
    let processed = 0;
    for (;;) {
      const { promoted, queueIds, latenessMs } = await session.promote(batch);
      processed += promoted;
      if (promoted > 0) events.emit("jobs.promoted", { jobs: promoted, latenessMs });
      if (queueIds.length > 0) onReady(queueIds);
      if (promoted < batch) return processed;
    }
  }

  const loop = new Loop({
    ...options,
    name: "scheduler",
    intervalMs: floorMs,
    run: async () => {
      plannedAt = Number.POSITIVE_INFINITY;
      if (!(await isWanted())) return { processed: 0 };
      const processed = await promoteAll();
      const waitMs = await session.waitForDue();
      // A loop's interval is spread by a tenth.
      const longestMs = 1.1 * floorMs;
      plannedAt = clock.monotonic() + Math.min(waitMs ?? longestMs, longestMs);
      return waitMs === null ? { processed } : { processed, nextMs: Math.ceil(waitMs) };
    },
  });
  return {
    name: loop.name,
    get report() {
      return loop.report;
    },
    start: () => loop.start(),
    stop: () => loop.stop(),
    wake: () => loop.wake(),
    due: (delayMs) => {
      if (clock.monotonic() + delayMs < plannedAt) loop.wake();
    },
  };
}

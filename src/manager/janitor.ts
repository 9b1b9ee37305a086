import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import { Loop } from "../runtime/loop.ts";
import type { Store, UpkeepSession } from "../store/store.ts";
import type { Retention } from "../store/upkeep.ts";
import { Pace } from "./pace.ts";
import { VacuumPace } from "./vacuum-pace.ts";

export interface JanitorOptions {
  readonly store: Store;
  readonly session: UpkeepSession;
  readonly process: string;
  readonly retention: Retention;
  /** False while what concerns everybody's jobs is somebody else's to do. */
  readonly isWanted: () => Promise<boolean>;
  /** How many jobs this process has settled so far. */
  readonly settled: () => number;
  readonly clock: Clock;
  readonly random: () => number;
  readonly events: Events;
}

const expireAtOnce = 1_000;
const hourMs = 3_600_000;
const minuteMs = 60_000;

/**
 * Expires, folds counts, forgets, and lets go of what is past its retention. Every process, leader or
 * not, keeps history partitions ahead and vacuums the hot tables under its own load.
 */
export function createJanitor(options: JanitorOptions): Loop {
  const { store, session, process, settled, isWanted, clock, events } = options;
  const [tidying, attaching] = [new Pace(minuteMs, clock), new Pace(hourMs, clock)];
  const pruning = new Pace(hourMs, clock, "at once");
  const vacuuming = new VacuumPace(() => session.hotRows());

  async function forEverybody(): Promise<number> {
    const expired = await session.expire(expireAtOnce, process);
    if (tidying.isDue()) await session.tidy();
    if (pruning.isDue()) {
      const pruned = await session.prune(options.retention);
      if (Object.values(pruned).some((count) => count > 0)) events.emit("history.pruned", pruned);
    }
    return expired;
  }

  return new Loop({
    ...options,
    name: "janitor",
    intervalMs: 1_000,
    run: async () => {
      if (await vacuuming.isDue(settled())) await session.vacuum();
      if (attaching.isDue()) await store.attachHistory();
      return { processed: (await isWanted()) ? await forEverybody() : 0 };
    },
  });
}

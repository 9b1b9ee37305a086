import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import { Loop } from "../runtime/loop.ts";
import type { Store, UpkeepSession } from "../store/store.ts";

export interface JanitorOptions {
  readonly store: Store;
  readonly session: UpkeepSession;
  readonly process: string;
  /** How many jobs this process has settled so far. */
  readonly settled: () => number;
  readonly clock: Clock;
  readonly random: () => number;
  readonly events: Events;
}

const vacuumEvery = 50_000;
const partitionsEveryMs = 3_600_000;
const tidyEveryMs = 60_000;

/** Expires, vacuums the hot table under load, folds counts, and keeps history partitions ahead. */
export function createJanitor(options: JanitorOptions): Loop {
  const { store, session, process, settled, clock } = options;
  let vacuumedAt = 0;
  let tidiedAt = clock.monotonic();
  let partitionedAt = clock.monotonic();
  return new Loop({
    ...options,
    name: "janitor",
    intervalMs: 1_000,
    run: async () => {
      const processed = await session.expire(1_000, process);
      if (settled() - vacuumedAt >= vacuumEvery) {
        vacuumedAt = settled();
        await session.vacuum();
      }
      if (clock.monotonic() - tidiedAt >= tidyEveryMs) {
        tidiedAt = clock.monotonic();
        await session.tidy();
      }
      if (clock.monotonic() - partitionedAt >= partitionsEveryMs) {
        partitionedAt = clock.monotonic();
        await store.attachHistory();
      }
      return { processed };
    },
  });
}

import type { Broker } from "../queue/broker.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import { Loop } from "../runtime/loop.ts";
import type { Store } from "../store/store.ts";

export interface RepublisherOptions {
  readonly store: Store;
  /** Null: dispatch without Redis. */
  readonly broker: Broker | null;
  readonly clock: Clock;
  readonly random: () => number;
  readonly events: Events;
}

/**
 * Repairs the broker from the store: windows that run low, or were lost, are filled with what is ready.
 * It marks nothing in the store; a hint that does not arrive is put again by a later round.
 */
export function createRepublisher(options: RepublisherOptions): Loop {
  const { store, broker } = options;
  return new Loop({
    ...options,
    name: "republisher",
    intervalMs: 1_000,
    run: async () => {
      if (broker === null || !broker.canPut) return { processed: 0 };
      const queues = await store.queues();
      const counts = await store.counts(queues.map(({ id }) => id));
      const hinted = queues.filter(({ paused, controlled }) => !paused && !controlled);
      const busy = hinted.filter(({ id }) => (counts.get(id)?.depth ?? 0) > 0);
      return { processed: await broker.refillLow(busy.map(({ id }) => id)) };
    },
  });
}

import type { QueueSnapshot } from "./queue.ts";

type Counts = Pick<QueueSnapshot, "depth" | "ready" | "scheduled" | "taken" | "dead">;

/** The counts of several queues as those of one. */
export function sumOf(parts: readonly QueueSnapshot[]): Counts {
  const sum = { depth: 0, ready: 0, scheduled: 0, taken: 0, dead: 0 };
  for (const part of parts) {
    sum.depth += part.depth;
    sum.ready += part.ready;
    sum.scheduled += part.scheduled;
    sum.taken += part.taken;
    sum.dead += part.dead;
  }
  return sum;
}

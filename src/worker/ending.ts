// How a worker ends: it claims nothing more, lets handlers finish, gives back the rest, and closes what it opened.

import type { Events } from "../runtime/events.ts";
import type { Handovers } from "./handovers.ts";
import type { HintBuffer } from "./hint-buffer.ts";
import type { Idleness } from "./idleness.ts";
import type { LeaseKeeper } from "./lease-keeper.ts";
import type { Runner } from "./runner.ts";
import type { Turns } from "./turns.ts";

export interface EndingOptions {
  readonly drainMs: number;
  readonly leaseMs: number;
  readonly handovers: Handovers;
  readonly turns: Turns;
  readonly hints: HintBuffer | null;
  readonly runner: Runner;
  readonly idleness: Idleness;
  readonly lease: LeaseKeeper;
  readonly events: Events;
}

/** Answers how many runs were given back. */
export async function endWorker(options: EndingOptions): Promise<number> {
  const { drainMs, leaseMs, handovers, turns, hints, runner, idleness, lease, events } = options;
  const withdrawn = handovers.close();
  await turns.stopClaiming();
  await hints?.close();
  runner.release();
  await idleness.within(drainMs);
  const released = runner.releaseRunning();
  // Without an answer for a whole lease: the jobs are others' to take anyway.
  await idleness.within(leaseMs);
  await withdrawn;
  await turns.stop();
  await hints?.close();
  await lease.stop();
  await lease
    .end(handovers.mayBeUnheard)
    .catch((error) => events.emit("service.failed", { service: "lease-keeper", error }));
  await turns.close();
  return released;
}

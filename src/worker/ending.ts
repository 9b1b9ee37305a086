// How a worker ends: it claims nothing more, lets handlers finish, gives back the rest, and closes what it opened.

import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import { isOverWithin } from "../runtime/is-over-within.ts";
import type { Handovers } from "./handovers.ts";
import type { HintBuffer } from "./hint-buffer.ts";
import type { Idleness } from "./idleness.ts";
import type { LeaseKeeper } from "./lease-keeper.ts";
import type { Runner } from "./runner.ts";
import type { Turns } from "./turns.ts";

export interface EndingOptions {
  /** Its start, if there was one: what it is about to open can be closed only when it is there. */
  readonly starting: Promise<void> | null;
  readonly drainMs: number;
  readonly leaseMs: number;
  readonly handovers: Handovers;
  readonly turns: Turns;
  readonly hints: HintBuffer | null;
  readonly runner: Runner;
  readonly idleness: Idleness;
  readonly lease: LeaseKeeper;
  readonly clock: Clock;
  readonly events: Events;
}

export interface Ending {
  /** How many runs were given back. */
  readonly released: number;
  /** The server did not answer in time. What could not be given back lapses with the lease. */
  readonly isSilent: boolean;
}

/** What is left when handlers have had their time: whoever waits for longer is killed meanwhile. */
const giveBackMs = 5_000;
/** Until those whose connections are closed have noticed. */
const unwindMs = 2_000;

export async function endWorker(options: EndingOptions): Promise<Ending> {
  const { drainMs, runner, turns, lease, clock } = options;
  const draining = drain(options);
  await isOverWithin(draining, drainMs, clock);
  let released = runner.releaseRunning();
  const closing = draining.then(() => {
    // What a claim that was under way has brought meanwhile has no time left either.
    released += runner.releaseRunning();
    return close(options);
  });
  if (await isOverWithin(closing, giveBackMs, clock)) return { released, isSilent: false };
  const left = [closing, turns.stop(), lease.stop(), turns.close(), lease.close()];
  await isOverWithin(Promise.allSettled(left), unwindMs, clock);
  return { released, isSilent: true };
}

async function drain(options: EndingOptions): Promise<void> {
  const { starting, drainMs, handovers, turns, hints, runner, idleness } = options;
  const withdrawn = handovers.close();
  // Nothing of what waits takes the place of a run that is given back.
  runner.release();
  await starting?.catch(() => {});
  await turns.stopClaiming();
  runner.release();
  await hints?.close();
  await idleness.within(drainMs);
  await withdrawn;
}

async function close(options: EndingOptions): Promise<void> {
  const { leaseMs, handovers, turns, hints, idleness, lease, events } = options;
  // Without an answer for a whole lease: the jobs are others' to take anyway.
  await idleness.within(Math.min(leaseMs, giveBackMs));
  await turns.stop();
  await hints?.close();
  await lease.stop();
  await lease
    .end(handovers.mayBeUnheard)
    .catch((error) => events.emit("service.failed", { service: "lease-keeper", error }));
  await turns.close();
}

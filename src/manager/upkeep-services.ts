// The leader's share of what keeps the queue healthy, each on a session that writes under its term.

import { randomUUID } from "node:crypto";
import type { Loop } from "../runtime/loop.ts";
import type { Notice, UpkeepSession } from "../store/store.ts";
import { createJanitor } from "./janitor.ts";
import type { LeaderContext, LeaderService, ServiceFactory } from "./leader-service.ts";
import { createReclaimer } from "./reclaimer.ts";
import { createRepublisher } from "./republisher.ts";
import { createScheduler } from "./scheduler.ts";

const always = async () => true;

/** A loop with a session of its own, which closes when it stops. */
function withSession(
  { store, term }: LeaderContext,
  create: (session: UpkeepSession) => Loop,
  hear: (notice: Notice, loop: Loop) => void = () => {},
): LeaderService {
  const session = store.upkeep(term);
  const loop = create(session);
  return {
    name: loop.name,
    get report() {
      return loop.report;
    },
    hear: (notice) => hear(notice, loop),
    start: () => loop.start(),
    async stop() {
      await loop.stop();
      await session.close();
    },
  };
}

const scheduler: ServiceFactory = (context) =>
  withSession(
    context,
    (session) =>
      createScheduler({
        ...context,
        session,
        floorMs: context.config.pollMs,
        batch: context.config.promoteBatch,
        isWanted: always,
        onReady: () => {},
      }),
    (notice, loop) => {
      if (notice.kind === "due") loop.wake();
    },
  );

const reclaimer: ServiceFactory = (context) =>
  withSession(context, (session) =>
    createReclaimer({
      ...context,
      session,
      process: randomUUID(),
      intervalMs: context.config.reclaimMs,
      leaseMs: context.config.leaseMs,
      isWanted: always,
      // Their delay is announced with what was settled.
      onReclaimed: () => void session.announceDue(0).catch(() => {}),
    }),
  );

const janitor: ServiceFactory = (context) =>
  withSession(context, (session) =>
    createJanitor({
      ...context,
      session,
      process: randomUUID(),
      isWanted: always,
      settled: () => 0,
    }),
  );

export const upkeepServices: readonly ServiceFactory[] = [
  scheduler,
  reclaimer,
  createRepublisher,
  janitor,
];

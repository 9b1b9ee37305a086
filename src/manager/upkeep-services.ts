// The leader's share of what keeps the queue healthy, each on a session that writes under its term.

import { randomUUID } from "node:crypto";
import type { Loop } from "../runtime/loop.ts";
import type { Notice } from "../store/store.ts";
import { createJanitor } from "./janitor.ts";
import type { LeaderService, ServiceFactory } from "./leader-service.ts";
import { createNotifier } from "./notifier.ts";
import { createReclaimer } from "./reclaimer.ts";
import { createRepublisher } from "./republisher.ts";
import { createScheduler } from "./scheduler.ts";
import { TriggerRunner } from "./trigger-runner.ts";

const always = async () => true;

type Looping = Pick<Loop, "name" | "report" | "start" | "stop">;

/** A loop that ends with its session: without a connection it has nothing to wait for. */
function withSession<L extends Looping>(
  loop: L,
  session: { close(): Promise<void> },
  hear: (notice: Notice, loop: L) => void = () => {},
): LeaderService {
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
    abandon: () => session.close(),
  };
}

const scheduler: ServiceFactory = (context) => {
  const session = context.store.upkeep(context.term);
  const loop = createScheduler({
    ...context,
    session,
    floorMs: context.config.pollMs,
    batch: context.config.promoteBatch,
    isWanted: always,
    onReady: () => {},
  });
  return withSession(loop, session, (notice) => {
    if (notice.kind === "due") loop.due(notice.delayMs);
  });
};

const reclaimer: ServiceFactory = (context) => {
  const session = context.store.upkeep(context.term);
  const loop = createReclaimer({
    ...context,
    session,
    process: randomUUID(),
    intervalMs: context.config.reclaimMs,
    leaseMs: context.config.leaseMs,
    isWanted: always,
    // Their delay is announced with what was settled.
    onReclaimed: () => void session.announceDue(0).catch(() => {}),
  });
  return withSession(loop, session);
};

const janitor: ServiceFactory = (context) => {
  const session = context.store.upkeep(context.term);
  const retention = { auditDays: context.config.auditRetentionDays };
  const own = { session, process: randomUUID(), retention, isWanted: always, settled: () => 0 };
  return withSession(createJanitor({ ...context, ...own }), session);
};

const triggerRunner: ServiceFactory = (context) => {
  const { store, term, config } = context;
  const session = store.triggerSession({ maxAttempts: config.maxAttempts, term });
  const own = { session, intervalMs: config.triggerMs, isWanted: always };
  return withSession(new TriggerRunner({ ...context, ...own }), session, (notice, runner) =>
    runner.hear(notice),
  );
};

const notifier: ServiceFactory = (context) => {
  const session = context.store.notifier(context.term);
  const own = { session, intervalMs: context.config.pollMs, isWanted: always };
  return withSession(createNotifier({ ...context, ...own }), session, (notice, loop) => {
    if (notice.kind === "notifications") loop.wake();
  });
};

export const upkeepServices: readonly ServiceFactory[] = [
  scheduler,
  reclaimer,
  createRepublisher,
  janitor,
  triggerRunner,
  notifier,
];

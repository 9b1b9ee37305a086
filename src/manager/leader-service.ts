import type { Config } from "../config.ts";
import type { Broker } from "../queue/broker.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Events } from "../runtime/events.ts";
import type { LoopReport } from "../runtime/loop.ts";
import type { Service } from "../runtime/service.ts";
import type { Notice, Store } from "../store/store.ts";

export type ServiceReport = LoopReport;

/** A service of the leader. It starts with a term and stops with it. */
export interface LeaderService extends Service {
  readonly report: ServiceReport;
  hear?(notice: Notice): void;
  /** Lets go of the connection it waits for: what is under way fails, and stop() need not wait for it. */
  abandon?(): Promise<void>;
}

export interface LeaderContext {
  readonly store: Store;
  readonly broker: Broker | null;
  /** Under which every write is made: store.asLeader(term, …), store.upkeep(term). */
  readonly term: number;
  /** Makes this process deliver to webhooks, if it does not yet. */
  readonly deliver: () => void;
  readonly config: Config;
  readonly clock: Clock;
  readonly random: () => number;
  readonly events: Events;
}

export type ServiceFactory = (context: LeaderContext) => LeaderService;

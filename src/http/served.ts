// A route of the contract with the function that answers it.

import type { Metrics } from "../client/metrics.ts";
import type { Millrace } from "../client/millrace.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Store } from "../store/store.ts";
import type { Arrival } from "./arrival.ts";
import type { Caller } from "./caller.ts";
import type { Input, Output, Route } from "./contract/route.ts";
import type { EventFeed } from "./event-feed.ts";
import type { Identities, Identity } from "./identity.ts";
import type { ItemTaker } from "./item-taker.ts";
import type { Session, Sessions } from "./sessions.ts";

/** What the answering functions work with. */
export interface Service {
  readonly millrace: Millrace;
  readonly store: Store;
  readonly identities: Identities;
  readonly sessions: Sessions;
  readonly caller: Caller;
  readonly taker: ItemTaker;
  readonly feed: EventFeed;
  /** Of this process, for counts. */
  readonly process: string;
  readonly metrics: Metrics;
  /** Whoever reaches the port may read them. */
  readonly metricsArePublic: boolean;
  readonly openApi: Record<string, unknown>;
  readonly clock: Clock;
  readonly random: () => number;
}

export interface Call<R extends Route> extends Input<R> {
  /** Who calls; of public routes nobody in particular. */
  readonly identity: Identity;
  /** null: it came with a key, or with nothing. */
  readonly session: Session | null;
  readonly arrival: Arrival;
  /** Aborts when nobody waits for the answer any more. */
  readonly gone: () => AbortSignal;
}

export interface Served {
  readonly route: Route;
  readonly answer: (
    call: Call<Route>,
    service: Service,
  ) => Promise<{ status: number; body?: unknown; headers?: Readonly<Record<string, string>> }>;
}

export const serve = <R extends Route>(
  route: R,
  answer: (call: Call<R>, service: Service) => Promise<Output<R>>,
): Served => ({ route, answer: answer as unknown as Served["answer"] });

import type { Store } from "../store/store.ts";
import type { LeaderElection } from "./leader-election.ts";

export interface ElectionOptions {
  readonly store: Store;
  /** A UUID of this manager's own: two on one host are two. */
  readonly holder: string;
  readonly ttlMs: number;
}

/** The office is a row with an expiry by the database's clock; every candidate asks for it. */
export function createPostgresElection(options: ElectionOptions): LeaderElection {
  const { store, holder, ttlMs } = options;
  const session = store.leader();
  return {
    campaign: () => session.elect(holder, ttlMs),
    renew: (term) => session.renew(term, ttlMs),
    resign: (term) => session.resign(term),
    close: () => session.close(),
  };
}

// What a scrape of the metrics asks of the store: a few rows, never a scan of a large table.

import type { BreakerState } from "../domain/circuit-breaker.ts";

export interface QueueFigures {
  readonly id: number;
  /** '' is a queue that all tenants share. */
  readonly tenant: string;
  readonly name: string;
  readonly paused: boolean;
  readonly ready: number;
  readonly running: number;
  /** Estimated from a sample where very many wait. */
  readonly scheduled: number;
  /** null: nothing is ready. */
  readonly oldestReadySeconds: number | null;
}

export interface Figures {
  readonly queues: readonly QueueFigures[];
  readonly breakers: readonly { readonly name: string; readonly state: BreakerState }[];
  readonly leader: { readonly inOffice: boolean; readonly term: number };
  readonly workers: number;
}

/** Of the pool for reading and administration. */
export interface PoolUse {
  readonly size: number;
  readonly open: number;
  readonly idle: number;
  /** Callers that wait for a connection. */
  readonly waiting: number;
}

export interface FigureStore {
  read(): Promise<Figures>;
  pool(): PoolUse;
}

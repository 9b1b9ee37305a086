// Hints of ready jobs, in claim order, shared by all processes. See docs/design/broker.md.
//
// A hint may be lost, doubled or wrong: whoever takes one finds the job ready in the store or passes on.

export interface Hint {
  readonly queueId: number;
  readonly weight: number;
  readonly seq: number;
  /** Where the store says the job is. */
  readonly tid: string;
}

export interface Taken {
  readonly hints: readonly Hint[];
  /**
   * Queues whose window is empty, runs low, or was filled for another epoch, and that the caller is to
   * refill. Said to one caller at a time, and not too often.
   */
  readonly refill: readonly number[];
}

export interface Window {
  /**
   * Answers those whose window belongs to another epoch and has to be refilled first. Rejects with
   * REDIS_UNAVAILABLE when it cannot be done, or not soon enough.
   */
  put(hints: readonly Hint[]): Promise<readonly Hint[]>;
  /** Up to `most` of the lowest, from these queues. */
  take(queueIds: readonly number[], most: number): Promise<Taken>;
  /** How many hints a queue's window holds; none if it was filled for another epoch. */
  count(queueId: number): Promise<number>;
  /**
   * Adds what is ready, in claim order; a window of another epoch is emptied first. `more`: there is more
   * behind the last of these, and until the next refill it stays out.
   */
  refill(queueId: number, hints: readonly Hint[], more: boolean): Promise<void>;
  /** Somebody has put hints into the window of this queue. */
  onPut(listener: (queueId: number) => void): void;
  /** PostgreSQL may have become another one. */
  renew(epoch: string): void;
  readonly isReady: boolean;
  /** What the server uses, in bytes; of a Cluster, one of its servers. */
  memory(): Promise<number>;
  close(): Promise<void>;
}

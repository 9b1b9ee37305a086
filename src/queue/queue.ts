// The priority–delay queue's contract. The lowest weight is served first, then the lowest sequence;
// an item with a delay is not served before it is due and never stands in the way of one that is.
// What is taken stays with its taker until it is acked, released or buried; a taker that dies loses
// it, and it is served again.

export interface EnqueueOptions {
  /** A label of the queue's `priorities`; `normal` when none is given. */
  readonly priority?: string;
  readonly delayMs?: number;
  readonly correlationId?: string;
  /** Made by the caller or by the queue. While an item is in the queue, the same id is the same item. */
  readonly id?: string;
}

export interface NewItem<T> extends EnqueueOptions {
  readonly job: T;
}

export interface QueueItem<T> {
  readonly id: string;
  readonly job: T;
  readonly priority: string;
  readonly weight: number;
  /** Milliseconds since the epoch. */
  readonly enqueuedAt: number;
  readonly readyAt: number;
  readonly sequence: number;
  /** How often it was taken, this time included; 0 before the first. */
  readonly attempt: number;
  readonly correlationId?: string;
}

export interface DeadItem<T> extends QueueItem<T> {
  readonly diedAt: number;
  readonly error: string;
}

export interface DequeueOptions {
  /** How long to wait for an item; 0, the default, does not wait, Infinity waits as long as it takes. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export interface DequeueManyOptions extends DequeueOptions {
  readonly max: number;
}

/** The names are those of the wire and of metrics, hence the snake case. */
export interface QueueSnapshot {
  readonly depth: number;
  readonly ready: number;
  readonly scheduled: number;
  readonly taken: number;
  readonly dead: number;
  readonly shutdown: boolean;
  readonly redis_active: boolean;
  /** The part of a fallback queue that serves now. */
  readonly active?: string;
  /** One per part of a composed queue that can be reached, by its name. */
  readonly parts?: Readonly<Record<string, QueueSnapshot>>;
}

export interface Queue<T> {
  enqueue(job: T, options?: EnqueueOptions): Promise<QueueItem<T>>;
  /** All or none: a full queue or a bad option refuses the whole call. */
  enqueueMany(items: readonly NewItem<T>[]): Promise<QueueItem<T>[]>;
  dequeue(options?: DequeueOptions): Promise<QueueItem<T> | null>;
  /** Waits for the first item only, then answers with what is there, up to `max`. */
  dequeueMany(options: DequeueManyOptions): Promise<QueueItem<T>[]>;
  /** Done with. False when the item was no longer the caller's. */
  ack(item: QueueItem<T>): Promise<boolean>;
  /** Back into the queue, under its old sequence, at once or after a delay. */
  release(item: QueueItem<T>, options?: { readonly delayMs?: number }): Promise<boolean>;
  /** Onto the dead list. */
  bury(item: QueueItem<T>, error: string | Error): Promise<boolean>;
  /** The oldest death first. */
  dead(options?: { readonly limit?: number }): Promise<DeadItem<T>[]>;
  /** From the dead list back into the queue, under a new sequence and with its attempts forgotten. */
  requeue(id: string): Promise<boolean>;
  snapshot(): Promise<QueueSnapshot>;
  /** Removes what is ready or scheduled and tells how many; what is taken stays with its taker. */
  purge(): Promise<number>;
  /**
   * Refuses every later enqueue. Waiting and later takes get what is ready, then null. Items that are
   * due later stay in Redis; a queue in memory hands them back here.
   */
  shutdown(): Promise<QueueItem<T>[]>;
}

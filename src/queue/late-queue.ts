// A queue on a server that was not there at the start. Each ping tries to open it; until one succeeds,
// everything asked of it fails as it would on a server that is gone.

import { MillraceError } from "../domain/errors.ts";
import type { HealthChecked } from "./health.ts";
import type {
  DeadItem,
  DequeueManyOptions,
  DequeueOptions,
  EnqueueOptions,
  NewItem,
  Queue,
  QueueItem,
  QueueSnapshot,
} from "./queue.ts";

type Server<T> = Queue<T> & HealthChecked;

export class LateQueue<T> implements Queue<T>, HealthChecked {
  readonly #open: () => Promise<Server<T>>;
  #opening: Promise<void> | undefined;
  #queue: Server<T> | undefined;
  #isShutDown = false;

  constructor(open: () => Promise<Server<T>>) {
    this.#open = open;
  }

  async ping(timeoutMs: number): Promise<void> {
    if (this.#queue !== undefined) return this.#queue.ping(timeoutMs);
    this.#opening ??= this.#tryToOpen();
    await this.#opening;
  }

  async #tryToOpen(): Promise<void> {
    try {
      const queue = await this.#open();
      if (this.#isShutDown) await queue.shutdown();
      this.#queue = queue;
    } finally {
      this.#opening = undefined;
    }
  }

  async enqueue(job: T, options?: EnqueueOptions): Promise<QueueItem<T>> {
    return this.#there().enqueue(job, options);
  }

  async enqueueMany(items: readonly NewItem<T>[]): Promise<QueueItem<T>[]> {
    return this.#there().enqueueMany(items);
  }

  async dequeue(options?: DequeueOptions): Promise<QueueItem<T> | null> {
    return this.#there().dequeue(options);
  }

  async dequeueMany(options: DequeueManyOptions): Promise<QueueItem<T>[]> {
    return this.#there().dequeueMany(options);
  }

  async ack(item: QueueItem<T>): Promise<boolean> {
    return this.#there().ack(item);
  }

  async release(item: QueueItem<T>, options?: { readonly delayMs?: number }): Promise<boolean> {
    return this.#there().release(item, options);
  }

  async bury(item: QueueItem<T>, error: string | Error): Promise<boolean> {
    return this.#there().bury(item, error);
  }

  async dead(options?: { readonly limit?: number }): Promise<DeadItem<T>[]> {
    return this.#there().dead(options);
  }

  async requeue(id: string): Promise<boolean> {
    return this.#there().requeue(id);
  }

  async snapshot(): Promise<QueueSnapshot> {
    return this.#there().snapshot();
  }

  async purge(): Promise<number> {
    return this.#there().purge();
  }

  async shutdown(): Promise<QueueItem<T>[]> {
    this.#isShutDown = true;
    return (await this.#queue?.shutdown()) ?? [];
  }

  #there(): Server<T> {
    if (this.#queue === undefined) throw new MillraceError("REDIS_UNAVAILABLE");
    return this.#queue;
  }
}

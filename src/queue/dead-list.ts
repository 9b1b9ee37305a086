import type { DeadItem, QueueItem } from "./queue.ts";

/** The oldest death first. An id that dies again has its last death only. */
export class DeadList<T> {
  readonly #items = new Map<string, DeadItem<T>>();

  get size(): number {
    return this.#items.size;
  }

  add(item: QueueItem<T>, diedAt: number, error: string): void {
    this.#items.delete(item.id);
    this.#items.set(item.id, { ...item, diedAt, error });
  }

  list(limit = this.#items.size): DeadItem<T>[] {
    return [...this.#items.values()].slice(0, limit);
  }

  remove(id: string): DeadItem<T> | undefined {
    const item = this.#items.get(id);
    this.#items.delete(id);
    return item;
  }
}

// Where a queue in memory keeps its items: in pages by sequence, a page being dropped with its last item.
// An id that the caller gave is found through a map; one made here ends in the sequence, so that it
// needs no entry there.

import { randomBytes } from "node:crypto";
import type { QueueItem } from "./queue.ts";

const pageSize = 256;

class Page<T> {
  readonly items: (QueueItem<T> | undefined)[] = new Array(pageSize);
  readonly taken = new Uint8Array(pageSize);
  count = 0;
}

export class ItemTable<T> {
  readonly #pages = new Map<number, Page<T>>();
  readonly #byId = new Map<string, number>();
  readonly #prefix = `${randomBytes(9).toString("base64url")}-`;
  #takenCount = 0;
  /** The page of the newest items, to find it without a search. */
  #newest = new Page<T>();
  #newestNo = -1;

  get takenCount(): number {
    return this.#takenCount;
  }

  makeId(sequence: number): string {
    return this.#prefix + sequence;
  }

  add(item: QueueItem<T>, idIsGiven: boolean): void {
    const { sequence } = item;
    const no = Math.floor(sequence / pageSize);
    if (no !== this.#newestNo) {
      this.#newest = new Page();
      this.#newestNo = no;
      this.#pages.set(no, this.#newest);
    }
    this.#newest.items[sequence % pageSize] = item;
    this.#newest.count++;
    if (idIsGiven) this.#byId.set(item.id, sequence);
  }

  at(sequence: number): QueueItem<T> {
    const item = this.#pages.get(Math.floor(sequence / pageSize))?.items[sequence % pageSize];
    if (item === undefined) throw new Error(`there is no item ${sequence}`);
    return item;
  }

  find(id: string): QueueItem<T> | undefined {
    const sequence = this.#byId.get(id) ?? this.#sequenceIn(id);
    const page = this.#pages.get(Math.floor(sequence / pageSize));
    const item = page?.items[sequence % pageSize];
    return item?.id === id ? item : undefined;
  }

  /** How many of these it does not have yet; an id that comes twice is one. */
  countNew(items: readonly { readonly id?: string }[]): number {
    const ids = new Set<string>();
    let unnamed = 0;
    for (const { id } of items) {
      if (id === undefined) unnamed++;
      else if (this.find(id) === undefined) ids.add(id);
    }
    return unnamed + ids.size;
  }

  /** Marks it as taken once more, and answers it as its taker sees it. */
  take(sequence: number): QueueItem<T> {
    const page = this.#pageOf(sequence);
    const at = sequence % pageSize;
    const item = page.items[at] as QueueItem<T>;
    const taken = copyOf(item, item.attempt + 1, item.readyAt);
    page.items[at] = taken;
    page.taken[at] = 1;
    this.#takenCount++;
    return taken;
  }

  /** Whether the item is still in the hands of this very take. */
  isHeldBy({ id, sequence, attempt }: QueueItem<T>): boolean {
    const page = this.#pages.get(Math.floor(sequence / pageSize));
    const at = sequence % pageSize;
    if (page === undefined || page.taken[at] !== 1) return false;
    const item = page.items[at];
    return item?.id === id && item.attempt === attempt;
  }

  /** Back among those that wait. */
  giveBack(sequence: number, readyAt: number): QueueItem<T> {
    const page = this.#pageOf(sequence);
    const at = sequence % pageSize;
    const item = page.items[at] as QueueItem<T>;
    const waiting = copyOf(item, item.attempt, readyAt);
    page.items[at] = waiting;
    page.taken[at] = 0;
    this.#takenCount--;
    return waiting;
  }

  remove(sequence: number): QueueItem<T> {
    const page = this.#pageOf(sequence);
    const at = sequence % pageSize;
    const item = page.items[at] as QueueItem<T>;
    if (page.taken[at] === 1) this.#takenCount--;
    page.taken[at] = 0;
    page.items[at] = undefined;
    if (--page.count === 0 && page !== this.#newest)
      this.#pages.delete(Math.floor(sequence / pageSize));
    if (this.#byId.size > 0) this.#byId.delete(item.id);
    return item;
  }

  #pageOf(sequence: number): Page<T> {
    const page = this.#pages.get(Math.floor(sequence / pageSize));
    if (page === undefined) throw new Error(`there is no item ${sequence}`);
    return page;
  }

  #sequenceIn(id: string): number {
    return id.startsWith(this.#prefix) ? Number(id.slice(this.#prefix.length)) : -1;
  }
}

/** Literals, because V8 makes them three times faster than instances of a class. */
function copyOf<T>(item: QueueItem<T>, attempt: number, readyAt: number): QueueItem<T> {
  const { id, job, priority, weight, enqueuedAt, sequence, correlationId } = item;
  return correlationId === undefined
    ? { id, job, priority, weight, enqueuedAt, readyAt, sequence, attempt }
    : { id, job, priority, weight, enqueuedAt, readyAt, sequence, attempt, correlationId };
}

import type { QueueItem } from "./queue.ts";

/** A queue that can give what waits in it to another queue. */
export interface HandsOver<T> {
  /** Holds back up to so many, in the order of serving, future ones last. Their ids stay known. */
  offer(max: number): QueueItem<T>[];
  /** The other queue has them now. */
  handedOver(items: readonly QueueItem<T>[]): void;
  /** The other queue did not take them: they wait again, where they stood. */
  takeBack(items: readonly QueueItem<T>[]): void;
}

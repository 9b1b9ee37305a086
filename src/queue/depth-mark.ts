import type { Events } from "../runtime/events.ts";

/** Warns when the depth reaches the mark, and again only after it was below. */
export class DepthMark {
  readonly #queue: string;
  readonly #warnDepth: number;
  readonly #events: Events | undefined;
  #isReached = false;

  constructor(queue: string, warnDepth: number, events: Events | undefined) {
    this.#queue = queue;
    this.#warnDepth = warnDepth;
    this.#events = events;
  }

  note(depth: number): void {
    const was = this.#isReached;
    this.#isReached = depth >= this.#warnDepth;
    if (was || !this.#isReached) return;
    this.#events?.emit("queue.deep", { queue: this.#queue, depth, warnDepth: this.#warnDepth });
  }
}

// Enqueues of one tick travel in one script call; each is refused or taken by itself.

import { MillraceError } from "../../domain/errors.ts";
import type { Events } from "../../runtime/events.ts";
import { uuidv7 } from "../../runtime/uuid.ts";
import type { NewItem, QueueItem } from "../queue.ts";
import type { RunScript } from "./queue-scripts.ts";
import { decodeRecord, encodeRest } from "./record.ts";
import { TickBatcher } from "./tick-batcher.ts";

export interface CheckedItem<T> {
  readonly item: NewItem<T>;
  readonly weight: number;
  readonly delayMs: number;
}

interface NamedItem<T> extends CheckedItem<T> {
  readonly id: string;
  readonly rest: string;
}

export interface EnqueuerOptions {
  readonly run: RunScript;
  readonly queue: string;
  readonly maxDepth: number;
  readonly warnDepth: number;
  readonly events?: Events | undefined;
}

type Answer = number | string;

const mostAtOnce = 500;

export class Enqueuer<T> {
  readonly #options: EnqueuerOptions;
  readonly #batcher: TickBatcher<readonly NamedItem<T>[], QueueItem<T>[] | MillraceError>;

  constructor(options: EnqueuerOptions) {
    this.#options = options;
    this.#batcher = new TickBatcher({
      ask: (groups) => this.#send(groups),
      most: mostAtOnce,
      weigh: (group) => group.length,
    });
  }

  async enqueue(checked: readonly CheckedItem<T>[]): Promise<QueueItem<T>[]> {
    const group = checked.map((one) => {
      const { job, priority = "normal", correlationId, id = uuidv7() } = one.item;
      return { ...one, id, rest: encodeRest({ job, priority, correlationId }) };
    });
    const answer = await this.#batcher.ask(group);
    if (answer instanceof MillraceError) throw answer;
    return answer;
  }

  async #send(
    groups: readonly (readonly NamedItem<T>[])[],
  ): Promise<(QueueItem<T>[] | MillraceError)[]> {
    const { maxDepth } = this.#options;
    const args = [Number.isFinite(maxDepth) ? String(maxDepth) : "0"];
    for (const group of groups) {
      args.push(String(group.length));
      for (const { id, weight, delayMs, rest } of group) {
        args.push(id, String(weight), String(delayMs), rest);
      }
    }
    const reply = await this.#options.run<Answer[]>("enqueue", args);
    const [now, depth, added] = reply as [number, number, number];
    this.#warn(depth, added);
    let at = 3;
    return groups.map((group) => {
      const answers = reply.slice(at, at + group.length);
      at += group.length;
      if (answers[0] === "full") {
        return new MillraceError("QUEUE_FULL", undefined, { details: { depth, maxDepth } });
      }
      return group.map((one, i) => itemOf(one, answers[i] ?? "", now));
    });
  }

  /** The enqueue that crosses the mark sees it from below: of all processes only one warns. */
  #warn(depth: number, added: number): void {
    const { queue, warnDepth, events } = this.#options;
    if (depth < warnDepth || depth - added >= warnDepth) return;
    events?.emit("queue.deep", { queue, depth, warnDepth });
  }
}

/** The answer is the new item's sequence, or the record of the item that was there. */
function itemOf<T>(one: NamedItem<T>, answer: Answer, now: number): QueueItem<T> {
  const { id, weight, delayMs, item } = one;
  if (typeof answer === "string") return decodeRecord<T>(id, answer);
  const { job, priority = "normal", correlationId } = item;
  const times = { enqueuedAt: now, readyAt: now + delayMs };
  const made = { id, job, priority, weight, ...times, sequence: answer, attempt: 0 };
  return correlationId === undefined ? made : { ...made, correlationId };
}

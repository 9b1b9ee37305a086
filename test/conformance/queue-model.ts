// The queue as simply as it can be said: a list of items and, of each, where it is. Time on a real
// server is known only to within the span of a call, so an item is surely due, perhaps due, or not due.

import type { QueueItem, QueueSnapshot } from "../../src/queue/queue.ts";

interface ModelItem {
  readonly id: string;
  readonly job: string;
  readonly weight: number;
  /** The place in the order of enqueuing. */
  sequence: number;
  place: "waiting" | "taken" | "dead";
  /** It is due at some moment from the one to the other. */
  dueFrom: number;
  dueBy: number;
  attempt: number;
  holder: number;
  /** What tells its take from every other one. */
  token: string;
}

/** When a call began and ended. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

const weights: Record<string, number> = { high: 0, normal: 5, low: 10 };

export class QueueModel {
  readonly #items = new Map<string, ModelItem>();
  readonly #slackMs: number;
  readonly #granted = new Set<string>();
  #sequence = 0;
  /** In the order of their deaths. */
  #dead: string[] = [];

  constructor(slackMs: number) {
    this.#slackMs = slackMs;
  }

  /** Answers the job that the queue must answer with: the old one where the id was there. */
  enqueue(id: string, job: string, priority: string, delayMs: number, span: Span): string {
    const known = this.#items.get(id);
    if (known !== undefined) return known.job;
    const weight = weights[priority] ?? 0;
    const sequence = ++this.#sequence;
    this.#items.set(id, {
      ...{ id, job, weight, sequence, place: "waiting", attempt: 0, holder: -1, token: "" },
      ...this.#due(delayMs, span),
    });
    return job;
  }

  isDead(id: string): boolean {
    return this.#items.get(id)?.place === "dead";
  }

  /** Says what is wrong with the answer to a take of at most `max`, or nothing. */
  take(served: readonly QueueItem<string>[], max: number, holder: number, span: Span) {
    for (const answer of served) {
      const item = this.#items.get(answer.id);
      if (item === undefined) return `${answer.id} is not in the queue`;
      if (item.place !== "waiting") return `${answer.id} is ${item.place}`;
      if (item.dueFrom > span.to) return `${answer.id} is not due`;
      const earlier = this.#surelyDue(span).find((other) => before(other, item));
      if (earlier !== undefined) return `${earlier.id} comes before ${answer.id}`;
      if (answer.job !== item.job) return `${answer.id} is another job`;
      if (answer.attempt !== ++item.attempt) return `${answer.id} has attempt ${answer.attempt}`;
      const token = tokenOf(answer);
      if (this.#granted.has(token)) return `${token} was granted before`;
      this.#granted.add(token);
      Object.assign(item, { place: "taken", holder, token });
    }
    const left = this.#surelyDue(span);
    if (served.length < max && left.length > 0) return `${left[0]?.id} was not served`;
    return undefined;
  }

  /** Whether a settle of this take must take effect. */
  #holds(taken: QueueItem<string>): ModelItem | undefined {
    const item = this.#items.get(taken.id);
    return item?.place === "taken" && item.token === tokenOf(taken) ? item : undefined;
  }

  ack(taken: QueueItem<string>): boolean {
    return this.#holds(taken) !== undefined && this.#items.delete(taken.id);
  }

  release(taken: QueueItem<string>, delayMs: number, span: Span): boolean {
    const item = this.#holds(taken);
    if (item === undefined) return false;
    Object.assign(item, this.#due(delayMs, span), { place: "waiting" });
    return true;
  }

  bury(taken: QueueItem<string>): boolean {
    const item = this.#holds(taken);
    if (item === undefined) return false;
    item.place = "dead";
    this.#dead.push(item.id);
    return true;
  }

  dead(): readonly string[] {
    return this.#dead;
  }

  requeue(id: string, span: Span): boolean {
    const item = this.#items.get(id);
    if (item?.place !== "dead") return false;
    const sequence = ++this.#sequence;
    Object.assign(item, this.#due(0, span), { place: "waiting", attempt: 0, sequence });
    this.#dead = this.#dead.filter((other) => other !== id);
    return true;
  }

  purge(): number {
    const waiting = this.#in("waiting");
    for (const { id } of waiting) this.#items.delete(id);
    return waiting.length;
  }

  crash(holder: number): void {
    for (const item of this.#in("taken")) {
      if (item.holder === holder) Object.assign(item, { place: "waiting", dueFrom: 0, dueBy: 0 });
    }
  }

  /** Says what is wrong with a snapshot, or nothing. */
  compare(snapshot: QueueSnapshot, span: Span): string | undefined {
    const waiting = this.#in("waiting");
    const known = { depth: waiting.length, taken: this.#in("taken").length };
    for (const [name, count] of Object.entries({ ...known, dead: this.#dead.length })) {
      const told = snapshot[name as "depth" | "taken" | "dead"];
      if (told !== count) return `${name} is ${told} instead of ${count}`;
    }
    const atLeast = this.#surelyDue(span).length;
    const atMost = waiting.filter(({ dueFrom }) => dueFrom <= span.to).length;
    if (snapshot.ready < atLeast || snapshot.ready > atMost)
      return `ready is ${snapshot.ready}, not ${atLeast} to ${atMost}`;
    return snapshot.ready + snapshot.scheduled === snapshot.depth ? undefined : "the sum is wrong";
  }

  #due(delayMs: number, { from, to }: Span): { dueFrom: number; dueBy: number } {
    return { dueFrom: from + delayMs - this.#slackMs, dueBy: to + delayMs + this.#slackMs };
  }

  #in(place: ModelItem["place"]): ModelItem[] {
    return [...this.#items.values()].filter((item) => item.place === place);
  }

  #surelyDue({ from }: Span): ModelItem[] {
    return this.#in("waiting").filter(({ dueBy, dueFrom }) => Math.max(dueBy, dueFrom) <= from);
  }
}

const tokenOf = ({ id, priority, sequence, attempt }: QueueItem<string>): string =>
  `${id} ${priority} ${sequence} ${attempt}`;

const before = (a: ModelItem, b: ModelItem): boolean =>
  a.weight < b.weight || (a.weight === b.weight && a.sequence < b.sequence);

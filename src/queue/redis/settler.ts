// Acks, releases and burials of one tick travel in one script call each. An item is settled by its id and
// the token of its take: who has lost it names an old one.

import type { QueueItem } from "../queue.ts";
import type { Holdings } from "./holdings.ts";
import { tokenOf } from "./record.ts";
import { TickBatcher } from "./tick-batcher.ts";

type Item = Pick<QueueItem<unknown>, "id" | "attempt" | "sequence">;

const mostAtOnce = 500;

export class Settler {
  readonly #acks: TickBatcher<string[], string>;
  readonly #releases: TickBatcher<string[], string>;
  readonly #burials: TickBatcher<string[], string>;

  constructor(holdings: Holdings) {
    const batcher = (script: "ack" | "release" | "bury") =>
      new TickBatcher<string[], string>({
        ask: (items) => holdings.settle(script, items),
        most: mostAtOnce,
      });
    this.#acks = batcher("ack");
    this.#releases = batcher("release");
    this.#burials = batcher("bury");
  }

  async ack(item: Item): Promise<boolean> {
    return (await this.#acks.ask([item.id, tokenOf(item)])) === "done";
  }

  async release(item: Item, delayMs: number): Promise<boolean> {
    const args = [item.id, tokenOf(item), String(delayMs), "spent"];
    return (await this.#releases.ask(args)) === "released";
  }

  async bury(item: Item, error: string): Promise<boolean> {
    return (await this.#burials.ask([item.id, tokenOf(item), error])) === "buried";
  }

  /** As if they had never been taken. What cannot be given back now is given back later. */
  giveBack(items: readonly Item[]): void {
    for (const item of items) {
      this.#releases.ask([item.id, tokenOf(item), "0", "unspent"]).catch(() => {});
    }
  }
}

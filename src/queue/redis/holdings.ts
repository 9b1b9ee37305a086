// What this process holds, under a name whose heartbeat keeps it. A take whose answer was missed may have
// left items under that name that nobody here knows of: then the process goes on under a new name with
// those it knows of, and the others go back. A settle whose answer was missed is repeated.

import { uuidv7 } from "../../runtime/uuid.ts";
import { isUnavailable } from "./connection.ts";
import type { RunScript } from "./queue-scripts.ts";
import { decodeHead, tokenOf } from "./record.ts";

export interface HoldingsOptions {
  readonly run: RunScript;
  readonly heartbeatMs: number;
}

interface Settle {
  readonly script: "ack" | "release" | "bury";
  /** The item's id, the token of its take, and what else the script wants to know of it. */
  readonly args: readonly string[];
}

/** Beats that may be missed before others get what is held, the one that is due included. */
const beatsPerLease = 3;

export class Holdings {
  readonly #options: HoldingsOptions;
  /** By id, the token of the take. */
  readonly #known = new Map<string, string>();
  readonly #owed: Settle[] = [];
  #taker = uuidv7();
  #former: string[] = [];
  #adopting: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #retired = false;

  constructor(options: HoldingsOptions) {
    this.#options = options;
  }

  get taker(): string {
    return this.#taker;
  }

  get size(): number {
    return this.#known.size;
  }

  get isBeating(): boolean {
    return this.#timer !== undefined && !this.#retired;
  }

  get #leaseMs(): string {
    return String(this.#options.heartbeatMs * beatsPerLease);
  }

  /** Ids and records by turns. One take at a time: whoever calls waits for the answer. */
  async take(most: number): Promise<{ nextDueMs: number; entries: string[] }> {
    if (this.#timer === undefined) await this.beat();
    await this.#adopt();
    try {
      const args = [this.#taker, String(most), this.#leaseMs];
      const [nextDueMs, ...entries] = await this.#options.run<[number, ...string[]]>("take", args);
      for (let i = 0; i < entries.length; i += 2) this.#note(entries[i], entries[i + 1]);
      return { nextDueMs, entries };
    } catch (error) {
      this.#former.push(this.#taker);
      this.#taker = uuidv7();
      throw error;
    }
  }

  /** One word per item, as the script answers; each item's arguments begin with id and token. */
  async settle(script: Settle["script"], items: readonly (readonly string[])[]): Promise<string[]> {
    const settles = items.map((args) => ({ script, args }));
    try {
      await this.#adopt();
      return await this.#send(script, settles);
    } catch (error) {
      if (isUnavailable(error)) this.#owed.push(...settles);
      throw error;
    }
  }

  /** Beats once, and from now on at intervals; repeats what is owed. */
  async beat(): Promise<void> {
    if (this.#retired) return;
    this.#schedule();
    await this.#adopt();
    await this.#options.run("beat", [this.#taker, this.#leaseMs]);
    for (let settle = this.#owed[0]; settle !== undefined; settle = this.#owed[0]) {
      const [id = "", token] = settle.args;
      if (this.#known.get(id) === token) await this.#send(settle.script, [settle]);
      this.#owed.shift();
    }
  }

  /** What is still held goes back, for others to take. */
  async retire(): Promise<void> {
    clearTimeout(this.#timer);
    if (!this.isBeating) return;
    this.#retired = true;
    for (const taker of [...this.#former, this.#taker]) await this.#options.run("retire", [taker]);
  }

  #note(id = "", record = ""): void {
    this.#known.set(id, tokenOf(decodeHead(id, record, 1)));
  }

  async #send(script: Settle["script"], settles: readonly Settle[]): Promise<string[]> {
    const args = settles.flatMap((settle) => settle.args);
    const words = await this.#options.run<string[]>(script, [this.#taker, ...args]);
    for (const {
      args: [id = "", token],
    } of settles) {
      if (this.#known.get(id) === token) this.#known.delete(id);
    }
    return words;
  }

  #schedule(): void {
    clearTimeout(this.#timer);
    // A beat that fails is made up for when the connection is back.
    this.#timer = setTimeout(() => this.beat().catch(() => {}), this.#options.heartbeatMs).unref();
  }

  /** Before anything is done under the new name, what is held must be under it. */
  async #adopt(): Promise<void> {
    if (this.#former.length === 0) return;
    this.#adopting ??= this.#adoptFormer().finally(() => {
      this.#adopting = undefined;
    });
    await this.#adopting;
  }

  async #adoptFormer(): Promise<void> {
    for (let old = this.#former[0]; old !== undefined; old = this.#former[0]) {
      await this.#options.run("adopt", [old, this.#taker, this.#leaseMs, ...this.#known.keys()]);
      this.#former.shift();
    }
  }
}

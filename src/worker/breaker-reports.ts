// What calls of a closed period had to say, until PostgreSQL has heard it: one request at a time, and
// what comes meanwhile goes together. A success is worth a word only while failures are on the count, or
// were a moment ago: another process may have counted one since.

import {
  emptyTally,
  joinTallies,
  type Tally,
  tallyOf,
  type Verdict,
} from "../domain/circuit-breaker.ts";
import type { BreakerStore } from "../store/breaker.ts";
import type { BreakerCopy } from "./breaker-copy.ts";

interface Batch {
  readonly period: number;
  readonly tally: Tally;
  readonly error: string | null;
}

export class BreakerReports {
  readonly #name: string;
  readonly #store: BreakerStore;
  readonly #copy: BreakerCopy;
  #batch: Batch | null = null;
  #sending: Promise<void> = Promise.resolve();
  #next: Promise<void> | null = null;
  #isReconsidering = false;

  constructor(name: string, store: BreakerStore, copy: BreakerCopy) {
    this.#name = name;
    this.#store = store;
    this.#copy = copy;
  }

  /** Resolves, for what is worth a word, when PostgreSQL knows of it or does not answer. */
  async add(period: number, verdict: Verdict, error: string | null): Promise<void> {
    const known = this.#copy.last?.machine;
    if (verdict === "none" || (known !== undefined && known.period !== period)) return;
    if (verdict === "success" && !this.#isNews()) return this.#reconsider(period);
    this.#join({ period, tally: tallyOf(verdict), error });
    return this.flush();
  }

  #isNews(): boolean {
    return this.#batch !== null || this.#next !== null || this.#copy.hasFailedLately;
  }

  /** What is just being read may tell of failures that this success has come after. */
  #reconsider(period: number): void {
    if (this.#isReconsidering || !this.#copy.isReading) return;
    this.#isReconsidering = true;
    void this.#copy.read().then(() => {
      this.#isReconsidering = false;
      if (this.#copy.hasFailedLately) void this.add(period, "success", null);
    });
  }

  flush(): Promise<void> {
    if (this.#next !== null) return this.#next;
    const sent = this.#sending.then(() => {
      this.#next = null;
      return this.#send();
    });
    this.#next = sent;
    this.#sending = sent;
    return sent;
  }

  async #send(): Promise<void> {
    const batch = this.#batch;
    if (batch === null) return;
    this.#batch = null;
    let isOnItsWay = false;
    await this.#copy.ask(() => {
      isOnItsWay = true;
      return this.#store.report(this.#name, batch).catch((error: unknown) => {
        this.#putBack(batch);
        throw error;
      });
    });
    if (!isOnItsWay) this.#putBack(batch);
  }

  #join(later: Batch): void {
    const { tally, period, error } = this.#batch ?? { ...later, tally: emptyTally };
    // Of a period that is over nobody wants to hear.
    this.#batch =
      period === later.period
        ? { period, tally: joinTallies(tally, later.tally), error: later.error ?? error }
        : later;
  }

  /** If only the answer was lost it counts twice, and the breaker opens a little early. */
  #putBack(batch: Batch): void {
    const later = this.#batch;
    this.#batch = batch;
    if (later !== null) this.#join(later);
  }
}

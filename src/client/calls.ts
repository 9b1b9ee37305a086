import { MillraceError } from "../domain/errors.ts";

/** Calls to the store from outside: waited for before the store closes, and refused from then on. */
export class Calls {
  readonly #underWay = new Set<Promise<unknown>>();
  #closed = false;

  get closed(): boolean {
    return this.#closed;
  }

  async track<T>(call: () => Promise<T>): Promise<T> {
    if (this.#closed) throw new MillraceError("STOPPED");
    const answer = call();
    this.#underWay.add(answer);
    try {
      return await answer;
    } finally {
      this.#underWay.delete(answer);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.allSettled(this.#underWay);
  }
}

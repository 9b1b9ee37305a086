// Ctrl-C asks to stop; Ctrl-C once more does not ask. The same for the other ways to be told.

import type { Terminal } from "./terminal.ts";

const exitCodes = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

export class StopRequest {
  readonly #requested = new AbortController();
  readonly #remove: (() => void)[] = [];

  constructor(terminal: Terminal) {
    for (const name of Object.keys(exitCodes) as (keyof typeof exitCodes)[]) {
      const listener = () => {
        if (this.#requested.signal.aborted) process.exit(exitCodes[name]);
        this.request();
      };
      process.on(name, listener);
      this.#remove.push(() => process.off(name, listener));
    }
    terminal.onClosed(() => this.request());
  }

  get signal(): AbortSignal {
    return this.#requested.signal;
  }

  request(): void {
    this.#requested.abort();
  }

  /** From here on signals do what they do by themselves. */
  release(): void {
    for (const remove of this.#remove.splice(0)) remove();
  }
}

// How far something is: a line that is rewritten on a terminal, and nothing elsewhere.

import { systemClock } from "../runtime/clock.ts";
import type { Terminal } from "./terminal.ts";

const pauseMs = 50;

export class ProgressBar {
  readonly #terminal: Terminal;
  readonly #what: string;
  readonly #total: number;
  readonly #started = systemClock.monotonic();
  #shownAt = Number.NEGATIVE_INFINITY;

  constructor(terminal: Terminal, what: string, total: number) {
    this.#terminal = terminal;
    this.#what = what;
    this.#total = total;
  }

  show(done: number): void {
    const now = systemClock.monotonic();
    const isLast = done >= this.#total;
    if (!this.#terminal.isInteractive || (!isLast && now - this.#shownAt < pauseMs)) return;
    this.#shownAt = now;
    const perSecond = (done / Math.max(1, now - this.#started)) * 1_000;
    this.#terminal.showLive(this.#line(done, perSecond));
  }

  end(): void {
    this.#terminal.endLive();
  }

  #line(done: number, perSecond: number): string {
    const part = this.#total === 0 ? 1 : Math.min(1, done / this.#total);
    const left = perSecond > 0 ? Math.ceil((this.#total - done) / perSecond) : 0;
    const words = ` ${Math.floor(part * 100)}%  ${done.toLocaleString("en")} of ${this.#total.toLocaleString("en")}${left > 0 ? `  ${left} s left` : ""}`;
    const room = this.#terminal.columns - this.#what.length - words.length - 5;
    const width = Math.max(5, Math.min(40, room));
    const full = Math.round(part * width);
    const bar = `${"█".repeat(full)}${"░".repeat(width - full)}`;
    return `${this.#what} ${this.#terminal.style("green", bar)}${words}`;
  }
}

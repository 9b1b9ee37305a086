// One-time tickets, kept in the process that made them: good for one sign-in within ten minutes.

import { randomBytes } from "node:crypto";
import type { Clock } from "../runtime/clock.ts";
import { hashOf } from "./api-key-text.ts";

const lifeMs = 10 * 60_000;
const mostTickets = 100;

export class Tickets {
  readonly #clock: Clock;
  /** Hash of the ticket → until when. */
  readonly #open = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  create(): string {
    const [oldest] = this.#open.keys();
    if (this.#open.size >= mostTickets && oldest !== undefined) this.#open.delete(oldest);
    const ticket = `mrt_${randomBytes(32).toString("hex")}`;
    this.#open.set(nameOf(ticket), this.#clock.monotonic() + lifeMs);
    return ticket;
  }

  /** True once at most. */
  redeem(ticket: string): boolean {
    const name = nameOf(ticket);
    const until = this.#open.get(name);
    this.#open.delete(name);
    return until !== undefined && this.#clock.monotonic() < until;
  }
}

const nameOf = (ticket: string): string => hashOf(ticket).toString("hex");

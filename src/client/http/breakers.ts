// Circuit breakers over HTTP.

import type { BreakerAction, BreakerState } from "../../domain/circuit-breaker.ts";
import { MillraceError } from "../../domain/errors.ts";
import type { HttpCaller } from "./caller.ts";

export interface RemoteBreaker {
  readonly name: string;
  readonly state: BreakerState;
  readonly failures: number;
  readonly openings: number;
  /** While open: how long until a probe may go out; null: not before somebody closes it. */
  readonly retryAfterMs: number | null;
  readonly cause: "failures" | "probe" | "manual" | null;
  readonly reason: string | null;
  readonly changedAt: Date;
  readonly lastError: string | null;
  readonly failureThreshold: number;
  readonly openCooldownSeconds: number;
  readonly halfOpenProbeCount: number;
}

type Wire = Record<string, unknown>;

const toBreaker = (wire: Wire): RemoteBreaker => ({
  name: String(wire.name),
  state: wire.state as BreakerState,
  failures: Number(wire.failures),
  openings: Number(wire.openings),
  retryAfterMs: wire.retry_after_ms === null ? null : Number(wire.retry_after_ms),
  cause: wire.cause as RemoteBreaker["cause"],
  reason: wire.reason === null ? null : String(wire.reason),
  changedAt: new Date(String(wire.changed_at)),
  lastError: wire.last_error === null ? null : String(wire.last_error),
  failureThreshold: Number(wire.failure_threshold),
  openCooldownSeconds: Number(wire.open_cooldown_seconds),
  halfOpenProbeCount: Number(wire.half_open_probe_count),
});

export class RemoteBreakers {
  readonly #caller: HttpCaller;

  constructor(caller: HttpCaller) {
    this.#caller = caller;
  }

  async list(): Promise<RemoteBreaker[]> {
    const { breakers } = await this.#caller.call<{ breakers: Wire[] }>("GET", "/api/breakers");
    return breakers.map(toBreaker);
  }

  async get(name: string): Promise<RemoteBreaker | null> {
    try {
      return toBreaker(await this.#caller.call<Wire>("GET", pathOf(name)));
    } catch (error) {
      if (error instanceof MillraceError && error.code === "BREAKER_NOT_FOUND") return null;
      throw error;
    }
  }

  /** Refuses every call until somebody closes it. */
  open(name: string, reason: string): Promise<RemoteBreaker> {
    return this.#change(name, "open", reason);
  }

  close(name: string, reason: string): Promise<RemoteBreaker> {
    return this.#change(name, "close", reason);
  }

  /** Closes it and forgets how often it opened and its last error. */
  reset(name: string, reason: string): Promise<RemoteBreaker> {
    return this.#change(name, "reset", reason);
  }

  async #change(name: string, action: BreakerAction, reason: string): Promise<RemoteBreaker> {
    const options = { body: { reason }, isRepeatable: false };
    return toBreaker(await this.#caller.call<Wire>("POST", `${pathOf(name)}/${action}`, options));
  }
}

const pathOf = (name: string) => `/api/breakers/${encodeURIComponent(name)}`;

// Circuit breakers as the store knows them.

import type {
  BreakerAction,
  BreakerSettings,
  BreakerState,
  Pass,
  Tally,
  Verdict,
} from "../domain/circuit-breaker.ts";

/** A breaker as it was read. Only durations are told, by the database's clock. */
export interface Breaker extends BreakerSettings {
  readonly id: number;
  readonly name: string;
  readonly state: BreakerState;
  /** One more with each change of state. */
  readonly period: number;
  readonly failures: number;
  /** While open: how long until a probe may go out; null: not before somebody closes it. */
  readonly retryAfterMs: number | null;
  /** While half open: the probes that are out, and how long each of them has left. */
  readonly probes: readonly { readonly id: string; readonly leftMs: number }[];
  /** Of the last change: failures in a row, a probe's answer, or a person. */
  readonly cause: "failures" | "probe" | "manual" | null;
  readonly reason: string | null;
  readonly changedAt: Date;
  /** How often it has opened, since the last reset. */
  readonly openings: number;
  readonly lastFailureAt: Date | null;
  readonly lastError: string | null;
}

interface Repair {
  readonly reason: string;
  readonly actor: string;
}

export interface BreakerStore {
  list(): Promise<Breaker[]>;
  find(name: string): Promise<Breaker | null>;
  /** Makes it, closed and with the usual settings, if there is none. */
  ensure(name: string): Promise<Breaker>;
  configure(name: string, settings: Partial<BreakerSettings>): Promise<Breaker>;
  /** Asking again with the same id answers the same. */
  askForProbe(name: string, probe: string): Promise<{ breaker: Breaker; granted: boolean }>;
  /** Of calls in a closed period; what is of another period changes nothing. */
  report(
    name: string,
    reports: { readonly period: number; readonly tally: Tally; readonly error: string | null },
  ): Promise<Breaker>;
  reportProbe(
    name: string,
    report: Pass & { readonly verdict: Verdict; readonly error: string | null },
  ): Promise<Breaker>;
  /** null: there is no such breaker. */
  change(name: string, action: BreakerAction, repair: Repair): Promise<Breaker | null>;
}

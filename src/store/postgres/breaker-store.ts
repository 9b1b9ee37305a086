import type { Breaker, BreakerStore } from "../breaker.ts";
import {
  askForProbe,
  changeByHand,
  configureBreaker,
  createBreaker,
  findBreaker,
  listBreakers,
  reportCalls,
  reportProbe,
} from "./breakers.ts";
import type { Database } from "./database.ts";
import type { Statement } from "./statement.ts";

interface BreakerRow {
  id: number;
  name: string;
  state: Breaker["state"];
  period: number;
  failures: number;
  retry_at: Date | null;
  probes: Record<string, number>;
  failure_threshold: number;
  open_cooldown_seconds: number;
  half_open_probe_count: number;
  probe_timeout_seconds: number;
  return_spread_seconds: number | null;
  cause: Breaker["cause"];
  reason: string | null;
  changed_at: Date;
  openings: number;
  last_failure_at: Date | null;
  last_error: string | null;
  now_s: number;
  took: boolean;
}

export function createBreakerStore(database: Database): BreakerStore {
  const ask = async (source: Statement, values: unknown[]): Promise<BreakerRow | undefined> =>
    (await database.query<BreakerRow>(source, values))[0];

  const find = async (name: string): Promise<Breaker | null> => {
    const row = await ask(findBreaker, [name]);
    return row === undefined ? null : toBreaker(row);
  };

  const ensure = async (name: string): Promise<Breaker> => {
    for (;;) {
      const found = await find(name);
      if (found !== null) return found;
      await database.query(createBreaker, [name]);
    }
  };

  /** Breakers are never deleted; whoever meets one that is missing is the first to use it. */
  const askKnown = async (source: Statement, values: [string, ...unknown[]]) => {
    for (;;) {
      const row = await ask(source, values);
      if (row !== undefined) return row;
      await database.query(createBreaker, [values[0]]);
    }
  };

  return {
    find,
    ensure,
    list: async () => (await database.query<BreakerRow>(listBreakers)).map(toBreaker),
    configure: async (name, settings) =>
      toBreaker(await askKnown(configureBreaker, [name, JSON.stringify(settings)])),
    askForProbe: async (name, probe) => {
      const row = await askKnown(askForProbe, [name, probe]);
      return { breaker: toBreaker(row), granted: row.took };
    },
    report: async (name, { period, tally, error }) => {
      const { leading, longest, trailing, succeeded } = tally;
      const values = [leading, longest, trailing, succeeded, error] as const;
      return toBreaker(await askKnown(reportCalls, [name, period, ...values]));
    },
    reportProbe: async (name, { period, probe, verdict, error }) =>
      toBreaker(await askKnown(reportProbe, [name, period, probe, verdict, error])),
    change: async (name, action, { reason, actor }) => {
      const row = await ask(changeByHand, [name, action, reason, actor]);
      return row === undefined ? null : toBreaker(row);
    },
  };
}

function toBreaker(row: BreakerRow): Breaker {
  const left = (atMs: number) => Math.max(0, atMs - row.now_s * 1_000);
  return {
    id: row.id,
    name: row.name,
    state: row.state,
    period: row.period,
    failures: row.failures,
    retryAfterMs: row.retry_at === null ? null : left(row.retry_at.getTime()),
    probes: Object.entries(row.probes).map(([id, until]) => ({ id, leftMs: left(until * 1_000) })),
    failureThreshold: row.failure_threshold,
    openCooldownSeconds: row.open_cooldown_seconds,
    halfOpenProbeCount: row.half_open_probe_count,
    probeTimeoutSeconds: row.probe_timeout_seconds,
    returnSpreadSeconds: row.return_spread_seconds,
    cause: row.cause,
    reason: row.reason,
    changedAt: row.changed_at,
    openings: row.openings,
    lastFailureAt: row.last_failure_at,
    lastError: row.last_error,
  };
}

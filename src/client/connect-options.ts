import { type Config, loadConfig, type Options } from "../config.ts";
import {
  checkFunction,
  checkMethods,
  checkOptions,
  type Known,
  knownNames,
} from "../domain/check-options.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Log } from "../runtime/log.ts";

export interface ConnectOptions extends Options {
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly log?: Log;
}

const known = knownNames({
  ...{ databaseUrl: true, dataDir: true, schema: true, migrate: true, poolSize: true },
  ...{ logLevel: true, useRedis: true, redisUrl: true, redisUrlHigh: true, redisUrlLow: true },
  ...{ redisHealthCheckTimeoutMs: true, priorities: true, categories: true, payloadLimits: true },
  ...{ resultLimitBytes: true, maxAttempts: true, leaseMs: true, renewMs: true, reclaimMs: true },
  ...{ triggerMs: true, pollMs: true, promoteBatch: true, leaderTtlMs: true, election: true },
  ...{ drainMs: true, queryTimeoutMs: true, enqueueTimeoutMs: true, keyWaitMs: true },
  ...{ auditRetentionDays: true, webhooks: true, clock: true, random: true, log: true },
} satisfies Known<ConnectOptions>);

export function configOf(options: ConnectOptions): Config {
  checkConnect("Millrace.connect", options);
  return loadConfig(options);
}

export function checkConnect(what: string, options: ConnectOptions): void {
  checkOptions(what, options, known);
  checkFunction("random", options.random);
  checkMethods("clock", options.clock, ["now", "monotonic", "sleep"]);
  checkMethods("log", options.log, ["debug", "info", "warn", "error", "child"]);
}

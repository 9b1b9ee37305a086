// Environment and options become one frozen Config. Nothing else reads process.env.

import { type Categories, type CategoryOptions, createCategories } from "./domain/categories.ts";
import { MillraceError } from "./domain/errors.ts";
import { checkPayloadLimits, type PayloadLimits } from "./domain/payload-options.ts";
import { checkPriorities, defaultPriorities, type Priorities } from "./domain/priority.ts";
import { redisUrls } from "./domain/redis-url.ts";
import {
  blankToNone,
  type Environment,
  flag,
  isOn,
  oneOf,
  textOf,
  whole,
} from "./domain/setting-values.ts";
import {
  createWebhookRules,
  type WebhookOptions,
  type WebhookRules,
} from "./domain/webhook-url.ts";
import { type HttpSettings, readHttpSettings } from "./runtime/http-settings.ts";

export interface Options {
  /** A PostgreSQL 14 or newer. Without it (and without DATABASE_URL) an embedded one starts. */
  readonly databaseUrl?: string;
  /** Where the embedded PostgreSQL keeps its data. */
  readonly dataDir?: string;
  readonly schema?: string;
  /** false: expect the schema to be there instead of bringing it up to date. */
  readonly migrate?: boolean;
  readonly poolSize?: number;
  readonly logLevel?: string;
  /** Dispatch over Redis; USE_REDIS_QUEUE, true when there is a URL. */
  readonly useRedis?: boolean;
  readonly redisUrl?: string;
  /** Hints of jobs with the weight of `high` or less, and of all others. */
  readonly redisUrlHigh?: string;
  readonly redisUrlLow?: string;
  readonly redisHealthCheckTimeoutMs?: number;
  readonly priorities?: Priorities;
  readonly categories?: readonly CategoryOptions[];
  readonly payloadLimits?: Partial<PayloadLimits>;
  readonly resultLimitBytes?: number;
  readonly maxAttempts?: number;
  readonly leaseMs?: number;
  readonly renewMs?: number;
  readonly reclaimMs?: number;
  /** How long the trigger runner sleeps at most. */
  readonly triggerMs?: number;
  readonly pollMs?: number;
  /** How many due jobs become ready in one transaction. */
  readonly promoteBatch?: number;
  /** How long a leader's term lasts without a renewal. */
  readonly leaderTtlMs?: number;
  /** Where managers elect their leader; "redis" keeps those who wait away from PostgreSQL. */
  readonly election?: "postgres" | "redis";
  readonly drainMs?: number;
  readonly queryTimeoutMs?: number;
  readonly enqueueTimeoutMs?: number;
  readonly keyWaitMs?: number;
  /** How long entries of the audit trail are kept; MILLRACE_AUDIT_RETENTION_DAYS, for ever unless told. */
  readonly auditRetentionDays?: number;
  /** Where webhooks may lead, beyond public HTTPS receivers. */
  readonly webhooks?: WebhookOptions;
}

export interface Config {
  readonly databaseUrl: string | undefined;
  readonly dataDir: string;
  readonly schema: string;
  readonly migrate: boolean;
  readonly poolSize: number;
  readonly logLevel: string;
  readonly redis: RedisConfig;
  readonly redisHealthCheckTimeoutMs: number;
  readonly priorities: Priorities;
  readonly categories: Categories;
  readonly payloadLimits: Partial<PayloadLimits>;
  readonly resultLimitBytes: number;
  readonly maxAttempts: number;
  readonly leaseMs: number;
  readonly renewMs: number;
  readonly reclaimMs: number;
  readonly triggerMs: number;
  readonly pollMs: number;
  readonly promoteBatch: number;
  readonly leaderTtlMs: number;
  readonly election: "postgres" | "redis";
  readonly drainMs: number;
  readonly queryTimeoutMs: number;
  readonly enqueueTimeoutMs: number;
  readonly keyWaitMs: number;
  readonly auditRetentionDays: number | null;
  readonly webhooks: WebhookRules;
}

const logLevels = ["trace", "debug", "info", "warn", "error", "fatal", "silent"];

export function loadConfig(options: Options = {}, env: Environment = process.env): Config {
  const leaseMs = whole("leaseMs", options.leaseMs ?? 15_000, 100);
  const config: Config = {
    databaseUrl: databaseUrl(options, env),
    dataDir:
      textOf("dataDir", options.dataDir) ?? blankToNone(env.MILLRACE_DATA_DIR) ?? "./.millrace",
    schema: schemaName(options.schema ?? "millrace"),
    migrate: isOn("migrate", options.migrate) ?? true,
    poolSize: whole("poolSize", options.poolSize ?? 5, 1),
    logLevel: logLevelOf(options, env),
    redis: redisConfig(options, env),
    redisHealthCheckTimeoutMs: redisHealthCheckTimeoutMs(options, env),
    priorities: checkPriorities(options.priorities ?? defaultPriorities),
    categories: createCategories(options.categories),
    payloadLimits: payloadLimits(options.payloadLimits),
    resultLimitBytes: whole("resultLimitBytes", options.resultLimitBytes ?? 64 * 1024, 1),
    maxAttempts: whole("maxAttempts", options.maxAttempts ?? 5, 1, 1000),
    leaseMs,
    renewMs: whole("renewMs", options.renewMs ?? Math.round(leaseMs / 3), 10, leaseMs),
    reclaimMs: whole("reclaimMs", options.reclaimMs ?? 4_000, 10),
    triggerMs: whole("triggerMs", options.triggerMs ?? 30_000, 10),
    pollMs: whole("pollMs", options.pollMs ?? 5_000, 10),
    promoteBatch: whole("promoteBatch", options.promoteBatch ?? 100, 1, 1_000),
    leaderTtlMs: whole("leaderTtlMs", options.leaderTtlMs ?? 10_000, 500),
    election: election(options, env),
    drainMs: whole("drainMs", options.drainMs ?? 30_000, 0),
    queryTimeoutMs: whole("queryTimeoutMs", options.queryTimeoutMs ?? 10_000, 100),
    enqueueTimeoutMs: whole("enqueueTimeoutMs", options.enqueueTimeoutMs ?? 30_000, 100),
    keyWaitMs: whole("keyWaitMs", options.keyWaitMs ?? 5_000, 0),
    auditRetentionDays: auditRetentionDays(options, env),
    webhooks: createWebhookRules(options.webhooks),
  };
  return Object.freeze(config);
}

/** Of `createQueue`; what is left out comes from the environment. */
export interface QueueOptions {
  readonly priorities?: Priorities;
  /** The most that a queue in memory may hold, ready and scheduled together. */
  readonly maxInMemory?: number;
  readonly warnDepth?: number;
  /** USE_REDIS_QUEUE; true when there is a URL. */
  readonly useRedis?: boolean;
  readonly redisUrl?: string;
  /** For the label `high` alone, and for all the others. */
  readonly redisUrlHigh?: string;
  readonly redisUrlLow?: string;
  readonly redisReadyKey?: string;
  readonly redisScheduledKey?: string;
  readonly redisHealthCheckTimeoutMs?: number;
  readonly logLevel?: string;
}

/** Why there is no Redis, or where it is. */
export type RedisConfig =
  | { readonly use: false; readonly reason: string }
  | { readonly use: true; readonly high: string; readonly low: string };

type RedisOptions = Pick<
  QueueOptions,
  "useRedis" | "redisUrl" | "redisUrlHigh" | "redisUrlLow" | "redisHealthCheckTimeoutMs"
>;

export interface QueueConfig {
  readonly priorities: Priorities;
  readonly maxInMemory: number | undefined;
  readonly warnDepth: number | undefined;
  readonly redis: RedisConfig;
  readonly redisReadyKey: string | undefined;
  readonly redisScheduledKey: string | undefined;
  readonly redisHealthCheckTimeoutMs: number;
  readonly logLevel: string;
}

export function loadQueueConfig(
  options: QueueOptions = {},
  env: Environment = process.env,
): QueueConfig {
  const { maxInMemory, warnDepth } = options;
  const config: QueueConfig = {
    priorities: checkPriorities(options.priorities ?? defaultPriorities),
    maxInMemory: maxInMemory === undefined ? undefined : whole("maxInMemory", maxInMemory, 1),
    warnDepth: warnDepth === undefined ? undefined : whole("warnDepth", warnDepth, 1),
    redis: redisConfig(options, env),
    redisReadyKey: options.redisReadyKey,
    redisScheduledKey: options.redisScheduledKey,
    redisHealthCheckTimeoutMs: redisHealthCheckTimeoutMs(options, env),
    logLevel: logLevelOf(options, env),
  };
  return Object.freeze(config);
}

function logLevelOf(options: { readonly logLevel?: string }, env: Environment): string {
  const level = options.logLevel ?? blankToNone(env.LOG_LEVEL) ?? "info";
  return oneOf("LOG_LEVEL", level, logLevels);
}

function redisHealthCheckTimeoutMs(options: RedisOptions, env: Environment): number {
  const seconds = blankToNone(env.REDIS_HEALTH_CHECK_TIMEOUT);
  const fromEnv = seconds === undefined ? 2_000 : Math.round(Number(seconds) * 1_000);
  const given = options.redisHealthCheckTimeoutMs ?? fromEnv;
  return whole("REDIS_HEALTH_CHECK_TIMEOUT, in milliseconds,", given, 1);
}

function redisConfig(options: RedisOptions, env: Environment): RedisConfig {
  const url = redisUrl(textOf("redisUrl", options.redisUrl), env.REDIS_URL);
  const high = redisUrl(textOf("redisUrlHigh", options.redisUrlHigh), env.REDIS_URL_HIGH) ?? url;
  const low = redisUrl(textOf("redisUrlLow", options.redisUrlLow), env.REDIS_URL_LOW) ?? url;
  const isWanted =
    isOn("useRedis", options.useRedis) ?? flag("USE_REDIS_QUEUE", env.USE_REDIS_QUEUE);
  if (isWanted === false) return { use: false, reason: "USE_REDIS_QUEUE is false" };
  if (high !== undefined && low !== undefined) return { use: true, high, low };
  if (high === undefined && low === undefined && isWanted === undefined)
    return { use: false, reason: "there is no REDIS_URL" };
  throw new MillraceError(
    "OPTION_INVALID",
    "Redis needs REDIS_URL, or REDIS_URL_HIGH and REDIS_URL_LOW both.",
  );
}

function redisUrl(given: string | undefined, fromEnv: string | undefined): string | undefined {
  const url = given ?? blankToNone(fromEnv);
  return url === undefined ? undefined : redisUrls(url).join(",");
}

function auditRetentionDays(options: Options, env: Environment): number | null {
  const fromEnv = blankToNone(env.MILLRACE_AUDIT_RETENTION_DAYS);
  const days = options.auditRetentionDays ?? (fromEnv === undefined ? undefined : Number(fromEnv));
  return days === undefined ? null : whole("MILLRACE_AUDIT_RETENTION_DAYS", days, 1, 36_500);
}

function election(options: Options, env: Environment): Config["election"] {
  const { election = "postgres" } = options;
  if (oneOf("election", election, ["postgres", "redis"]) === "postgres") return "postgres";
  if (redisConfig(options, env).use) return "redis";
  throw new MillraceError("OPTION_INVALID", "An election through Redis needs REDIS_URL.");
}

/** What the HTTP service asks of its surroundings. */
export const loadHttpSettings = (env: Environment = process.env): HttpSettings =>
  readHttpSettings(env);

/** What the command line asks of its surroundings. */
export interface TerminalSettings {
  readonly colour: boolean;
  /** LOG_LEVEL, if it was set: the command line is silent otherwise. */
  readonly logLevel: string | undefined;
}

export function loadTerminalSettings(env: Environment = process.env): TerminalSettings {
  const logLevel = blankToNone(env.LOG_LEVEL);
  return Object.freeze({
    colour: !env.NO_COLOR && env.TERM !== "dumb",
    logLevel: logLevel === undefined ? undefined : oneOf("LOG_LEVEL", logLevel, logLevels),
  });
}

function payloadLimits(limits: Partial<PayloadLimits> = {}): Partial<PayloadLimits> {
  checkPayloadLimits("payloadLimits", limits);
  return Object.freeze({ ...limits });
}

/** The name is part of SQL text, so it is kept plain. */
function schemaName(value: unknown): string {
  if (typeof value === "string" && /^(?!pg_|information_schema$)[a-z_][a-z0-9_]{0,39}$/.test(value))
    return value;
  throw new MillraceError(
    "OPTION_INVALID",
    "schema must begin with a small letter or _, have at most 40 of a-z, 0-9 and _, and not be PostgreSQL's own.",
  );
}

function databaseUrl(options: Options, env: Environment): string | undefined {
  const value = textOf("databaseUrl", options.databaseUrl) ?? blankToNone(env.DATABASE_URL);
  if (value === undefined || /^postgres(ql)?:\/\//.test(value)) return value;
  const name = value === options.databaseUrl ? "databaseUrl" : "DATABASE_URL";
  // The value is not echoed: it may hold a password.
  throw new MillraceError(
    "OPTION_INVALID",
    `${name} must begin with postgres:// or postgresql://.`,
  );
}

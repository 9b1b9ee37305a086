// A queue's settings as they read over HTTP: one table for the client and for the service.

import type { Rate } from "../../domain/token-bucket.ts";
import type { QueueSettings } from "../../store/queue.ts";

type Wire = Readonly<Record<string, unknown>>;
type Plain = Exclude<keyof QueueSettings, "maxAttempts" | RateName>;
type RateName = keyof typeof rateFields;

const plainFields = {
  description: "description",
  isActive: "is_active",
  enforceUniqueReference: "enforce_unique_reference",
  capacity: "capacity",
  warnDepth: "warn_depth",
  tenantCapacity: "tenant_capacity",
  retentionDays: "retention_days",
  deadRetentionDays: "dead_retention_days",
  timelineRetentionDays: "timeline_retention_days",
  keyTtlSeconds: "key_ttl_seconds",
  concurrency: "concurrency",
  keyConcurrency: "key_concurrency",
  ageingStepMs: "ageing_step_ms",
  fair: "fair",
  deadLetterBlocksKey: "dead_letter_blocks_key",
} as const satisfies Record<Plain, string>;

const rateFields = {
  throttle: "throttle",
  keyThrottle: "key_throttle",
  rateLimit: "rate_limit",
  tenantRateLimit: "tenant_rate_limit",
} as const;

const flags = new Set<string>([
  "is_active",
  "enforce_unique_reference",
  "fair",
  "dead_letter_blocks_key",
]);
const kindOf = (field: string) =>
  field === "description" ? "text" : flags.has(field) ? "flag" : "number";

/** Every setting by its name over HTTP, and what its values are. */
export const queueFields: ReadonlyMap<string, "text" | "flag" | "number" | "rate"> = new Map([
  ["max_retries", "number"] as const,
  ...Object.values(plainFields).map((field) => [field, kindOf(field)] as const),
  ...Object.values(rateFields).map((field) => [field, "rate"] as const),
]);

export interface RateWire {
  readonly limit: number;
  readonly window_ms: number;
}

export const rateToWire = (rate: Rate | null): RateWire | null =>
  rate === null ? null : { limit: rate.limit, window_ms: rate.windowMs };

const wireToRate = (rate: RateWire | null): Rate | null =>
  rate === null ? null : { limit: rate.limit, windowMs: rate.window_ms };

type Convert = (value: never) => unknown;

/** What is left out stays left out. */
function rename(
  from: Wire,
  names: Iterable<readonly [string, string, Convert?]>,
): Record<string, unknown> {
  const to: Record<string, unknown> = {};
  for (const [name, other, convert] of names) {
    const value = from[name];
    if (value !== undefined) to[other] = convert === undefined ? value : convert(value as never);
  }
  return to;
}

const swapped = (names: Readonly<Record<string, string>>) =>
  Object.entries(names).map(([name, other]) => [other, name] as const);

const retriesOf = (attempts: number | null) => (attempts === null ? null : attempts - 1);
const attemptsOf = (retries: number | null) => (retries === null ? null : retries + 1);

export const settingsToWire = (settings: QueueSettings): Record<string, unknown> =>
  rename(settings as Wire, [
    ...Object.entries(plainFields),
    ...Object.entries(rateFields).map(([name, other]) => [name, other, rateToWire] as const),
    ["maxAttempts", "max_retries", retriesOf],
  ]);

export const wireToSettings = (wire: Wire): QueueSettings =>
  rename(wire, [
    ...swapped(plainFields),
    ...swapped(rateFields).map(([other, name]) => [other, name, wireToRate] as const),
    ["max_retries", "maxAttempts", attemptsOf],
  ]);

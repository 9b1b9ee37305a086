import { MillraceError } from "../domain/errors.ts";
import type { TenantSettings } from "../store/flow.ts";
import type { QueueSettings } from "../store/store.ts";

const most = 2_147_483_647;
const whole = (min: number, max: number) => (value: unknown) =>
  Number.isInteger(value) && Number(value) >= min && Number(value) <= max;
const orNone = (allowed: (value: unknown) => boolean) => (value: unknown) =>
  value === null || allowed(value);
const rate = (value: unknown) =>
  typeof value === "object" &&
  value !== null &&
  Object.keys(value).every((key) => key === "limit" || key === "windowMs") &&
  "limit" in value &&
  "windowMs" in value &&
  whole(1, most)(value.limit) &&
  whole(10, 86_400_000)(value.windowMs);
const flag = (value: unknown) => typeof value === "boolean";

const rules: Record<keyof QueueSettings, (value: unknown) => boolean> = {
  description: orNone((value) => typeof value === "string" && value.length <= 2_000),
  isActive: flag,
  maxAttempts: orNone(whole(1, 1000)),
  enforceUniqueReference: flag,
  capacity: orNone(whole(0, most)),
  warnDepth: orNone(whole(0, most)),
  retentionDays: whole(1, 3650),
  deadRetentionDays: orNone(whole(1, 3650)),
  timelineRetentionDays: orNone(whole(1, 3650)),
  keyTtlSeconds: whole(1, most),
  fair: flag,
  ageingStepMs: orNone(whole(1, 86_400_000)),
  concurrency: orNone(whole(1, most)),
  keyConcurrency: orNone(whole(1, most)),
  throttle: orNone(rate),
  keyThrottle: orNone(rate),
  deadLetterBlocksKey: flag,
  rateLimit: orNone(rate),
  tenantRateLimit: orNone(rate),
  tenantCapacity: orNone(whole(0, most)),
};

const tenantRules: Record<keyof TenantSettings, (value: unknown) => boolean> = {
  weight: whole(1, 100),
  rateLimit: orNone(rate),
  capacity: orNone(whole(0, most)),
  warnDepth: orNone(whole(0, most)),
};

export const checkQueueSettings = (settings: QueueSettings) => check(settings, rules, "queues");

export const checkTenantSettings = (settings: TenantSettings) =>
  check(settings, tenantRules, "tenants");

function check(
  settings: object,
  known: Readonly<Record<string, (value: unknown) => boolean>>,
  owners: string,
): void {
  if (typeof settings !== "object" || settings === null)
    throw new MillraceError("OPTION_INVALID", `The settings of ${owners} must be an object.`);
  for (const [name, value] of Object.entries(settings)) {
    const allowed = Object.hasOwn(known, name) ? known[name] : undefined;
    if (value === undefined || allowed?.(value)) continue;
    const problem = allowed === undefined ? `is not a setting of ${owners}` : "has a wrong value";
    throw new MillraceError("OPTION_INVALID", `"${name}" ${problem}.`);
  }
}

import { MillraceError } from "../domain/errors.ts";
import type { TenantSettings } from "../store/flow.ts";
import type { QueueSettings } from "../store/store.ts";

/** What a setting may be, for the code and in words. */
interface Rule {
  readonly allows: (value: unknown) => boolean;
  readonly says: string;
}

const most = 2_147_483_647;

const isWhole = (value: unknown, min: number, max: number): boolean =>
  Number.isInteger(value) && Number(value) >= min && Number(value) <= max;

const whole = (min: number, max: number): Rule => ({
  allows: (value) => isWhole(value, min, max),
  says: `a whole number from ${min} to ${max}`,
});

const orNone = ({ allows, says }: Rule): Rule => ({
  allows: (value) => value === null || allows(value),
  says: `${says}, or null`,
});

const longestWindowMs = 86_400_000;

const rate: Rule = {
  allows: (value) =>
    typeof value === "object" &&
    value !== null &&
    Object.keys(value).every((key) => key === "limit" || key === "windowMs") &&
    "limit" in value &&
    "windowMs" in value &&
    isWhole(value.limit, 1, most) &&
    isWhole(value.windowMs, 10, longestWindowMs),
  says: `{ limit, windowMs }, whole numbers from 1 to ${most} and from 10 to ${longestWindowMs}`,
};

const flag: Rule = { allows: (value) => typeof value === "boolean", says: "true or false" };

const text: Rule = {
  allows: (value) => typeof value === "string" && value.length <= 2_000,
  says: "a text of at most 2000 characters",
};

const rules: Record<keyof QueueSettings, Rule> = {
  description: orNone(text),
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

const tenantRules: Record<keyof TenantSettings, Rule> = {
  weight: whole(1, 100),
  rateLimit: orNone(rate),
  capacity: orNone(whole(0, most)),
  warnDepth: orNone(whole(0, most)),
};

export const checkQueueSettings = (settings: QueueSettings) => check(settings, rules, "queues");

export const checkTenantSettings = (settings: TenantSettings) =>
  check(settings, tenantRules, "tenants");

function check(settings: object, known: Readonly<Record<string, Rule>>, owners: string): void {
  if (typeof settings !== "object" || settings === null)
    throw new MillraceError("OPTION_INVALID", `The settings of ${owners} must be an object.`);
  for (const [name, value] of Object.entries(settings)) {
    const rule = Object.hasOwn(known, name) ? known[name] : undefined;
    if (value === undefined || rule?.allows(value)) continue;
    const problem = rule === undefined ? `is not a setting of ${owners}` : `must be ${rule.says}`;
    throw new MillraceError("OPTION_INVALID", `"${name}" ${problem}.`);
  }
}

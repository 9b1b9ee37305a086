import { MillraceError } from "../domain/errors.ts";
import type { QueueSettings } from "../store/store.ts";

const most = 2_147_483_647;
const whole = (min: number, max: number) => (value: unknown) =>
  Number.isInteger(value) && Number(value) >= min && Number(value) <= max;
const orNone = (allowed: (value: unknown) => boolean) => (value: unknown) =>
  value === null || allowed(value);
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
};

export function checkQueueSettings(settings: QueueSettings): void {
  for (const [name, value] of Object.entries(settings)) {
    const allowed = Object.hasOwn(rules, name) ? rules[name as keyof QueueSettings] : undefined;
    if (value === undefined || allowed?.(value)) continue;
    const problem = allowed === undefined ? "is not a setting of queues" : "has a wrong value";
    throw new MillraceError("OPTION_INVALID", `"${name}" ${problem}.`);
  }
}

// What a job type finds in a payload: its priority, its delay, its key.

import type { JobDefinition } from "../worker/job-definition.ts";

interface Found {
  readonly priority?: string;
  readonly delayMs?: number;
  readonly orderingKey?: string;
  readonly limitKey?: string;
}

/** What the caller says goes before what the job type finds. */
export function withRules<Options extends Found>(
  { rules }: JobDefinition<unknown, unknown, unknown>,
  payload: unknown,
  options: Options,
): Options {
  if (rules === null) return options;
  const found = {
    priority: options.priority ?? rules.priority?.(payload),
    delayMs: options.delayMs ?? rules.delayMs?.(payload),
    orderingKey: options.orderingKey ?? rules.orderingKey?.(payload),
    limitKey: options.limitKey ?? rules.limitKey?.(payload),
  };
  const given = Object.entries(found).filter(([, value]) => value !== undefined);
  return { ...options, ...Object.fromEntries(given) };
}

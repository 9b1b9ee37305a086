import { MillraceError } from "./errors.ts";

/** Labels and their weights; the lower weight runs first. */
export type Priorities = Readonly<Record<string, number>>;

export const defaultPriorities: Priorities = Object.freeze({ high: 0, normal: 5, low: 10 });

export function weightOf(label: string | undefined, priorities: Priorities): number {
  const name: unknown = label ?? "normal";
  if (typeof name !== "string")
    throw new MillraceError("UNKNOWN_PRIORITY", "A priority is named by a text.");
  const weight = Object.hasOwn(priorities, name) ? priorities[name] : undefined;
  if (weight === undefined) {
    throw new MillraceError("UNKNOWN_PRIORITY", `There is no priority "${name}".`, {
      details: { known: Object.keys(priorities) },
    });
  }
  return weight;
}

export function checkPriorities(priorities: Priorities): Priorities {
  if (typeof priorities !== "object" || priorities === null)
    throw new MillraceError("OPTION_INVALID", "Priorities must be labels with their weights.");
  for (const [label, weight] of Object.entries(priorities)) {
    if (label === "" || !label.isWellFormed())
      throw new MillraceError("OPTION_INVALID", "The label of a priority must be a text.");
    if (!Number.isInteger(weight) || weight < -100 || weight > 100) {
      throw new MillraceError(
        "OPTION_INVALID",
        `The weight of priority "${label}" must be a whole number from -100 to 100.`,
      );
    }
  }
  if (!Object.hasOwn(priorities, "normal")) {
    throw new MillraceError("OPTION_INVALID", 'Priorities must include "normal".');
  }
  return Object.freeze({ ...priorities });
}

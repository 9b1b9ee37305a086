// One step of a rehearsal, in the words of the pure core.

import { randomUUID } from "node:crypto";
import type { Command, JobCore } from "../../src/domain/lifecycle.ts";
import type { LapseCharge } from "../../src/domain/outcome.ts";
import type { Token } from "../../src/domain/token.ts";

/** Time stands still at `now`; what is to come later is `future`. */
export const now = 0;
export const future = 1;

export interface Actor {
  readonly id: string;
  readonly queueId: number;
  core: JobCore;
  /** Every token ever granted for it, the newest last. */
  readonly tokens: Token[];
}

type Whose = "current" | "older" | "other claim" | "next number" | "other job" | "never";

export interface Step {
  readonly do: string;
  readonly slot: number;
  readonly whose: Whose;
  readonly later: boolean;
  readonly alive: boolean;
  readonly charge: LapseCharge;
}

export function tokenOf({ whose }: Step, actor: Actor, other: Actor | undefined): Token {
  const current = actor.tokens.at(-1) ?? { claimId: randomUUID(), claimNo: 1 };
  switch (whose) {
    case "older":
      return actor.tokens.at(-2) ?? { ...current, claimNo: current.claimNo - 1 };
    case "other claim":
      return { ...current, claimId: other?.tokens.at(-1)?.claimId ?? randomUUID() };
    case "next number":
      return { ...current, claimNo: current.claimNo + 1 };
    case "other job":
      return other?.tokens.at(-1) ?? { ...current, claimId: randomUUID() };
    case "never":
      return { claimId: randomUUID(), claimNo: current.claimNo };
    default:
      return current;
  }
}

export function commandOf(step: Step, token: Token): Command {
  switch (step.do) {
    case "retry":
    case "snooze":
      return { do: step.do, token, dueAt: step.later ? future : now };
    case "lapse":
      return { do: "lapse", token, charge: step.charge, now };
    case "cancel":
    case "reprocess":
    case "discard":
    case "delete":
      return { do: step.do };
    default:
      return { do: step.do as "complete", token };
  }
}

// The one transition table. PostgreSQL's guarded statements are compared with it by a property test,
// and the diagram in docs/internals.md is checked against it.

export const jobStates = [
  "scheduled",
  "ready",
  "running",
  "completed",
  "dead",
  "cancelled",
  "expired",
  "discarded",
  "deleted",
] as const;
export type JobState = (typeof jobStates)[number];

export const transitionTable = {
  promote: { from: ["scheduled"], to: ["ready"] },
  claim: { from: ["ready"], to: ["running"] },
  renew: { from: ["running"], to: ["running"] },
  complete: { from: ["running"], to: ["completed"] },
  retry: { from: ["running"], to: ["scheduled", "cancelled"] },
  snooze: { from: ["running"], to: ["scheduled", "cancelled"] },
  fail: { from: ["running"], to: ["dead"] },
  release: { from: ["running"], to: ["ready", "cancelled"] },
  lapse: { from: ["running"], to: ["scheduled", "ready", "dead", "cancelled"] },
  cancel: { from: ["scheduled", "ready", "running"], to: ["cancelled", "running"] },
  cancelAck: { from: ["running"], to: ["cancelled"] },
  expire: { from: ["scheduled", "ready"], to: ["expired"] },
  reprocess: { from: ["dead", "cancelled", "expired"], to: ["dead", "cancelled", "expired"] },
  discard: { from: ["dead"], to: ["discarded"] },
  delete: {
    from: ["scheduled", "ready", "completed", "dead", "cancelled", "expired", "discarded"],
    to: ["deleted"],
  },
} as const satisfies Record<string, { from: readonly JobState[]; to: readonly JobState[] }>;

export type Transition = keyof typeof transitionTable;

export function allows(transition: Transition, from: JobState): boolean {
  return (transitionTable[transition].from as readonly JobState[]).includes(from);
}

export function isTerminal(state: JobState): boolean {
  return state !== "scheduled" && state !== "ready" && state !== "running";
}

export type ItemStatus = "NEW" | "IN_PROGRESS" | "DONE" | "FAILED" | "DELETED";

export function itemStatus(state: JobState): ItemStatus {
  switch (state) {
    case "scheduled":
    case "ready":
      return "NEW";
    case "running":
      return "IN_PROGRESS";
    case "completed":
      return "DONE";
    case "dead":
      return "FAILED";
    default:
      return "DELETED";
  }
}

import { describe, expect, it } from "vitest";
import {
  allows,
  isTerminal,
  itemStatus,
  type JobState,
  jobStates,
  type Transition,
  transitionTable,
} from "../../src/domain/job-state.ts";

const transitions = Object.keys(transitionTable) as Transition[];
const to = (transition: Transition): readonly JobState[] => transitionTable[transition].to;

describe("the transition table", () => {
  it("reaches every state from the two a job may start in", () => {
    const reached = new Set<JobState>(["ready", "scheduled"]);
    for (let size = 0; size < reached.size; ) {
      size = reached.size;
      for (const state of [...reached]) {
        for (const transition of transitions) {
          if (allows(transition, state)) for (const next of to(transition)) reached.add(next);
        }
      }
    }
    expect([...reached].sort()).toEqual([...jobStates].sort());
  });

  it("lets only repairs and deletion touch an ended job", () => {
    const ended = jobStates.filter(isTerminal);
    expect(ended).toEqual(["completed", "dead", "cancelled", "expired", "discarded", "deleted"]);
    for (const state of ended) {
      const allowed = transitions.filter((transition) => allows(transition, state));
      for (const transition of allowed) {
        expect(["reprocess", "discard", "delete"]).toContain(transition);
      }
    }
  });

  it("never leads from an ended state back to one that can run", () => {
    for (const transition of transitions) {
      const fromEnded = transitionTable[transition].from.some(isTerminal);
      const revives = to(transition).some((state) => !isTerminal(state));
      if (fromEnded && revives) expect(transition).toBe("delete");
    }
    expect(to("delete")).toEqual(["deleted"]);
  });

  it("leaves nothing to be done to a deleted job", () => {
    expect(transitions.filter((transition) => allows(transition, "deleted"))).toEqual([]);
  });

  it("does not delete or expire what somebody is running", () => {
    expect(allows("delete", "running")).toBe(false);
    expect(allows("expire", "running")).toBe(false);
    expect(allows("cancel", "running")).toBe(true);
  });

  it("starts a run in exactly one way", () => {
    const starts = transitions.filter(
      (transition) => to(transition).includes("running") && !allows(transition, "running"),
    );
    expect(starts).toEqual(["claim"]);
  });

  it("ends a run only by its holder or by its lapse", () => {
    const ends = transitions.filter(
      (transition) =>
        allows(transition, "running") && to(transition).some((state) => state !== "running"),
    );
    expect(ends.sort()).toEqual(
      // cancel only flags a running job; its other target is for jobs that wait.
      ["complete", "retry", "snooze", "fail", "release", "lapse", "cancel", "cancelAck"].sort(),
    );
  });

  it("shows each state as one of the five item words", () => {
    expect(Object.fromEntries(jobStates.map((state) => [state, itemStatus(state)]))).toEqual({
      scheduled: "NEW",
      ready: "NEW",
      running: "IN_PROGRESS",
      completed: "DONE",
      dead: "FAILED",
      cancelled: "DELETED",
      expired: "DELETED",
      discarded: "DELETED",
      deleted: "DELETED",
    });
  });
});

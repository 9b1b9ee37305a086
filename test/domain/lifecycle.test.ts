import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { allows, isTerminal, type JobState, transitionTable } from "../../src/domain/job-state.ts";
import { apply, type Command, type JobCore, newJob } from "../../src/domain/lifecycle.ts";

const token = fc.record({
  claimId: fc.constantFrom("a", "b", "c"),
  claimNo: fc.integer({ min: 0, max: 8 }),
});
const now = fc.integer({ min: 0, max: 100 });
const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant("promote"), now }) },
  {
    weight: 12,
    arbitrary: fc.record({
      do: fc.constant("claim"),
      now,
      claimId: fc.constantFrom("a", "b", "c"),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constantFrom("complete", "fail", "release", "cancelAck", "renew"),
      token,
    }),
  },
  {
    weight: 12,
    arbitrary: fc.record({ do: fc.constantFrom("retry", "snooze"), token, dueAt: now }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("lapse"),
      token,
      charge: fc.constantFrom("charged", "spared"),
      now,
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constantFrom("cancel", "reprocess", "discard", "delete") }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("expire"), now }) },
) as fc.Arbitrary<Command>;

const job: fc.Arbitrary<JobCore> = fc
  .record({ dueAt: fc.option(now, { nil: undefined }), expiresAt: fc.option(now) })
  .map(({ dueAt, expiresAt }) =>
    newJob({
      ...(dueAt === undefined ? {} : { dueAt }),
      ...(expiresAt === null ? {} : { expiresAt: expiresAt + 50 }),
    }),
  );

/** Most random tokens are stale, so half of the commands are given the current one. */
const commands = fc.array(fc.tuple(command, fc.boolean()), { maxLength: 60 });

function aim(job: JobCore, [command, current]: [Command, boolean]): Command {
  if (!current || !("token" in command) || job.claimId === null) return command;
  return { ...command, token: { claimId: job.claimId, claimNo: job.claimNo } };
}

type Step = { before: JobCore; command: Command; after: JobCore; ok: boolean };

function everyStep(check: (step: Step) => void) {
  fc.assert(
    fc.property(job, commands, (first, list) => {
      let before = first;
      for (const wanted of list) {
        const command = aim(before, wanted);
        const result = apply(before, command);
        const after = result.ok ? result.job : before;
        check({ before, command, after, ok: result.ok });
        before = after;
      }
    }),
    { numRuns: 300 },
  );
}

const running = (claims = 1): JobCore => ({
  ...newJob(),
  state: "running",
  claimId: "a",
  claimNo: claims,
  attempt: claims,
});
const current = { claimId: "a", claimNo: 1 };
const done = (job: JobCore, command: Command): JobCore => {
  const result = apply(job, command);
  if (!result.ok) throw new Error(result.refusal);
  return result.job;
};
const refusal = (job: JobCore, command: Command) => {
  const result = apply(job, command);
  return result.ok ? null : result.refusal;
};

describe("every sequence of commands", () => {
  it("keeps to the transition table", () => {
    everyStep(({ before, command, after, ok }) => {
      if (!ok) return;
      expect(allows(command.do, before.state)).toBe(true);
      expect(transitionTable[command.do].to as readonly JobState[]).toContain(after.state);
    });
  });

  it("never lowers claimNo, and raises it by one with each claim only", () => {
    everyStep(({ before, command, after, ok }) => {
      const claims = ok && command.do === "claim" ? 1 : 0;
      expect(after.claimNo).toBe(before.claimNo + claims);
    });
  });

  it("refuses every token but the current one", () => {
    everyStep(({ before, command, ok }) => {
      if (!("token" in command)) return;
      const { claimId, claimNo } = command.token;
      const held =
        before.state === "running" && before.claimId === claimId && before.claimNo === claimNo;
      expect(ok).toBe(held);
      if (!held) expect(refusal(before, command)).toBe("stale_token");
    });
  });

  it("ends a job once: an ended one never runs or waits again", () => {
    everyStep(({ before, after, command }) => {
      if (!isTerminal(before.state)) return;
      expect(isTerminal(after.state)).toBe(true);
      if (after.state !== before.state) expect(["discard", "delete"]).toContain(command.do);
    });
  });

  it("keeps attempts between zero and the number of claims, and crashes below the fourth", () => {
    everyStep(({ after }) => {
      expect(after.attempt).toBeGreaterThanOrEqual(0);
      expect(after.attempt).toBeLessThanOrEqual(after.claimNo);
      expect(after.crashCount).toBeLessThanOrEqual(3);
    });
  });

  it("never lets a job whose cancel was requested wait again", () => {
    everyStep(({ before, after }) => {
      if (before.state === "running" && before.cancelRequested) {
        expect(["scheduled", "ready"]).not.toContain(after.state);
      }
    });
  });

  it("does not change the job it was given", () => {
    everyStep(({ before, command }) => {
      const copy = structuredClone(before);
      apply(Object.freeze(before), command);
      expect(before).toEqual(copy);
    });
  });
});

describe("a run", () => {
  it("gives the attempt back on snooze and on release, and not on retry", () => {
    expect(done(running(2), { do: "snooze", token: { ...current, claimNo: 2 }, dueAt: 9 })).toEqual(
      expect.objectContaining({ state: "scheduled", attempt: 1, claimNo: 2, dueAt: 9 }),
    );
    expect(done(running(), { do: "release", token: current })).toEqual(
      expect.objectContaining({ state: "ready", attempt: 0, claimNo: 1 }),
    );
    expect(done(running(), { do: "retry", token: current, dueAt: 9 }).attempt).toBe(1);
  });

  it("becomes a dead letter with its third crash, even when a cancel was requested", () => {
    const lapse = { do: "lapse", token: current, charge: "charged", now: 5 } as const;
    expect(done({ ...running(), crashCount: 1 }, lapse)).toEqual(
      expect.objectContaining({ state: "scheduled", crashCount: 2, dueAt: 5 }),
    );
    const third = { ...running(), crashCount: 2, cancelRequested: true };
    expect(done(third, lapse)).toEqual(expect.objectContaining({ state: "dead", crashCount: 3 }));
  });

  it("is not charged for its neighbour's crash", () => {
    const spared = { do: "lapse", token: current, charge: "spared", now: 5 } as const;
    expect(done(running(), spared)).toEqual(
      expect.objectContaining({ state: "ready", attempt: 0, crashCount: 0 }),
    );
  });

  it("is only flagged by a cancel, and then does not come back by retry, snooze or release", () => {
    const flagged = done(running(), { do: "cancel" });
    expect(flagged).toEqual(
      expect.objectContaining({ state: "running", cancelRequested: true, claimNo: 1 }),
    );
    expect(done(flagged, { do: "retry", token: current, dueAt: 9 }).state).toBe("cancelled");
    expect(done(flagged, { do: "snooze", token: current, dueAt: 9 }).state).toBe("cancelled");
    expect(done(flagged, { do: "release", token: current }).state).toBe("cancelled");
    expect(done(flagged, { do: "complete", token: current }).state).toBe("completed");
    expect(done(flagged, { do: "fail", token: current }).state).toBe("dead");
  });
});

describe("a waiting job", () => {
  it("is promoted when due, and not before", () => {
    expect(refusal(newJob({ dueAt: 10 }), { do: "promote", now: 9 })).toBe("not_due");
    expect(done(newJob({ dueAt: 10 }), { do: "promote", now: 10 }).state).toBe("ready");
  });

  it("is not claimed once it has expired", () => {
    const claim = { do: "claim", now: 10, claimId: "a" } as const;
    expect(refusal(newJob({ expiresAt: 10 }), claim)).toBe("expired");
    expect(refusal(newJob({ expiresAt: 11 }), { do: "expire", now: 10 })).toBe("not_expired");
    expect(done(newJob({ expiresAt: 10 }), { do: "expire", now: 10 }).state).toBe("expired");
  });
});

describe("an ended job", () => {
  const dead = done(running(), { do: "fail", token: current });

  it("is reprocessed once", () => {
    const reprocessed = done(dead, { do: "reprocess" });
    expect(reprocessed).toEqual({ ...dead, reprocessed: true });
    expect(refusal(reprocessed, { do: "reprocess" })).toBe("illegal_transition");
  });

  it("is discarded only as long as it was not reprocessed", () => {
    expect(done(dead, { do: "discard" }).state).toBe("discarded");
    expect(refusal(done(dead, { do: "reprocess" }), { do: "discard" })).toBe("illegal_transition");
  });

  it("tells its former holder that the token is stale", () => {
    expect(refusal(dead, { do: "complete", token: current })).toBe("stale_token");
  });
});

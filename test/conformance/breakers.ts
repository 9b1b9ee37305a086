import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { expect, it } from "vitest";
import {
  admit,
  type BreakerSettings,
  type CircuitBreaker,
  changeByHand,
  emptyTally,
  joinTallies,
  newBreaker,
  type Pass,
  report,
  reportProbe,
  tallyOf,
  type Verdict,
} from "../../src/domain/circuit-breaker.ts";
import type { Breaker } from "../../src/store/breaker.ts";
import type { Topic } from "./stage.ts";

const by = { reason: "a test", actor: "operator" };
const failures = (count: number) =>
  Array.from({ length: count }, () => tallyOf("failure")).reduce(joinTallies, emptyTally);

/** Real milliseconds pass too; against these seconds they are nothing. */
const settings: BreakerSettings = {
  failureThreshold: 3,
  openCooldownSeconds: 1_000,
  halfOpenProbeCount: 2,
  probeTimeoutSeconds: 700,
  returnSpreadSeconds: null,
};
const waitMs = 400_000;

const said = fc.constantFrom<Verdict>("success", "failure", "failure", "none");
const step = fc.oneof(
  { weight: 7, arbitrary: fc.record({ do: fc.constant("call" as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("wait" as const) }) },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant("end" as const), which: fc.nat(9), verdict: said }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("report" as const),
      old: fc.boolean(),
      batch: fc.array(fc.constantFrom("success" as const, "failure" as const), { maxLength: 5 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("change" as const),
      action: fc.constantFrom("open" as const, "close" as const, "reset" as const),
    }),
  },
);
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;
const wait: Step = { do: "wait" };
const openAndCooled: readonly Step[] = [
  { do: "report", old: false, batch: ["failure", "failure", "failure"] },
  ...[wait, wait, wait],
];

export const breakers: Topic = (stage) => {
  const store = () => stage().store.breakers;
  const pass = (name: string, ms: number) =>
    stage().sql(
      `update millrace.breaker b set retry_at = retry_at - $2 * interval '1 ms', probes = (
        select coalesce(jsonb_object_agg(key, value::text::float8 - $2::float8 / 1000), '{}') from jsonb_each(b.probes)
      ) where name = $1`,
      [name, ms],
    );
  const fresh = async (given: Partial<BreakerSettings> = {}) => {
    const name = `b-${randomUUID().slice(0, 8)}`;
    await store().configure(name, given);
    return name;
  };
  const fail = async (name: string, count: number, error: string | null = null) => {
    const { period } = await store().ensure(name);
    return store().report(name, { period, tally: failures(count), error });
  };
  const opened = async (given: Partial<BreakerSettings> = {}) => {
    const name = await fresh(given);
    const { failureThreshold, openCooldownSeconds } = await store().ensure(name);
    expect((await fail(name, failureThreshold)).state).toBe("OPEN");
    await pass(name, openCooldownSeconds * 1_000);
    return name;
  };

  it("makes a breaker once, closed and with the usual settings", async () => {
    const name = `b-${randomUUID()} with spaces and "quotes"`;
    const made = await Promise.all(Array.from({ length: 8 }, () => store().ensure(name)));
    expect(new Set(made.map(({ id }) => id)).size).toBe(1);
    expect(made[0]).toMatchObject({
      ...{ state: "CLOSED", failures: 0, openings: 0, retryAfterMs: null, probes: [] },
      ...{ failureThreshold: 5, openCooldownSeconds: 30, halfOpenProbeCount: 1 },
      ...{ probeTimeoutSeconds: 60, returnSpreadSeconds: null },
    });
    expect((await store().list()).map((one) => one.name)).toContain(name);
    expect(await store().find("nobody's")).toBeNull();
  });

  it("does in SQL what the pure machine does", async () => {
    await fc.assert(
      fc.asyncProperty(fc.boolean(), fc.array(step, { maxLength: 25 }), async (cooled, steps) => {
        await rehearse(await fresh(settings), [...(cooled ? openAndCooled : []), ...steps]);
      }),
      { numRuns: 60 },
    );
  });

  async function rehearse(name: string, steps: readonly Step[]): Promise<void> {
    let machine: CircuitBreaker = newBreaker;
    let now = 0;
    const out: Pass[] = [];
    const periods = [1];
    for (const one of steps) {
      let stored: Breaker = await store().ensure(name);
      if (one.do === "wait") {
        now += waitMs;
        await pass(name, waitMs);
        stored = await store().ensure(name);
      } else if (one.do === "call") {
        const probe = randomUUID();
        const admission = admit(machine, settings, now, probe);
        if (machine.state === "CLOSED") continue;
        const asked = await store().askForProbe(name, probe);
        expect(asked.granted).toBe(admission.kind === "passed");
        if (admission.kind === "passed") {
          machine = admission.breaker;
          out.push(admission.pass);
        }
        stored = asked.breaker;
      } else if (one.do === "end" && out.length > 0) {
        const [call] = out.splice(one.which % out.length, 1);
        if (call === undefined) throw new Error("no call");
        const { verdict } = one;
        machine = reportProbe(machine, settings, now, { ...call, verdict });
        stored = await store().reportProbe(name, { ...call, verdict, error: null });
      } else if (one.do === "report") {
        const tally = one.batch.map(tallyOf).reduce(joinTallies, emptyTally);
        const period = one.old ? (periods.at(-2) ?? 0) : machine.period;
        machine = report(machine, settings, now, { period, tally });
        stored = await store().report(name, { period, tally, error: null });
      } else if (one.do === "change") {
        machine = changeByHand(machine, one.action);
        stored = (await store().change(name, one.action, by)) ?? stored;
      }
      if (machine.period !== periods.at(-1)) periods.push(machine.period);
      compare(stored, machine, now);
    }
  }

  function compare(stored: Breaker, machine: CircuitBreaker, now: number): void {
    const { state, period, failures: count, probes, retryAtMs } = machine;
    expect(stored).toMatchObject({ state, period, failures: count });
    expect(stored.probes.map(({ id }) => id).sort()).toEqual(probes.map(({ id }) => id).sort());
    expect(stored.retryAfterMs === null).toBe(retryAtMs === null);
    const near = (ms: number) => Math.round(ms / 100_000);
    if (stored.retryAfterMs !== null)
      expect(near(stored.retryAfterMs)).toBe(near(Math.max(0, (retryAtMs ?? 0) - now)));
  }

  it("counts what many report together exactly, and opens once", async () => {
    const name = await fresh({ failureThreshold: 40 });
    const { period } = await store().ensure(name);
    const reportOne = () => store().report(name, { period, tally: failures(1), error: "down" });
    const before = await Promise.all(Array.from({ length: 39 }, reportOne));
    expect(before.map((one) => one.failures).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 39 }, (_, i) => i + 1),
    );
    const after = await Promise.all(Array.from({ length: 20 }, reportOne));
    expect(new Set(after.map((one) => `${one.state} ${one.period}`))).toEqual(
      new Set([`OPEN ${period + 1}`]),
    );
    expect(after[0]).toMatchObject({ cause: "failures", openings: 1, lastError: "down" });
  });

  it("grants many who ask at once no more probes than there are", async () => {
    const name = await opened({ halfOpenProbeCount: 3 });
    const asked = await Promise.all(
      Array.from({ length: 30 }, () => store().askForProbe(name, randomUUID())),
    );
    expect(asked.filter(({ granted }) => granted)).toHaveLength(3);
    expect(new Set(asked.map(({ breaker }) => breaker.period)).size).toBe(1);
  });

  it("grants no probe before the cool-down is over, nor to what was opened by hand", async () => {
    const name = await fresh();
    await fail(name, 5);
    expect((await store().askForProbe(name, "early")).granted).toBe(false);
    await store().change(name, "open", by);
    await pass(name, 1e9);
    expect((await store().askForProbe(name, "never")).granted).toBe(false);
  });

  it("grants a probe again once its holder has been silent for too long, or by its own id", async () => {
    const name = await opened();
    expect((await store().askForProbe(name, "first")).granted).toBe(true);
    expect((await store().askForProbe(name, "second")).granted).toBe(false);
    expect((await store().askForProbe(name, "first")).granted).toBe(true);
    await pass(name, 60_000);
    const { granted, breaker } = await store().askForProbe(name, "second");
    expect(granted).toBe(true);
    const late = { period: breaker.period, probe: "first", error: null } as const;
    expect((await store().reportProbe(name, { ...late, verdict: "success" })).state).toBe(
      "HALF_OPEN",
    );
    const answer = { ...late, probe: "second", verdict: "success" } as const;
    expect(await store().reportProbe(name, answer)).toMatchObject({ state: "CLOSED", failures: 0 });
  });

  it("audits what is done by hand, with reason, actor and states", async () => {
    const name = await fresh();
    for (const action of ["open", "close", "reset"] as const)
      await store().change(name, action, by);
    const entries = await stage().sql(
      "select actor, action, reason, details from millrace.audit where target = $1 order by id",
      [name],
    );
    const entry = (action: string, from: string, to: string) => ({
      ...{ actor: "operator", action, reason: "a test", details: { from, to } },
    });
    expect(entries).toEqual([
      entry("breaker_open", "CLOSED", "OPEN"),
      entry("breaker_close", "OPEN", "CLOSED"),
      entry("breaker_reset", "CLOSED", "CLOSED"),
    ]);
    expect(await store().change("nobody's", "open", by)).toBeNull();
  });

  it("resets what close remembers, and keeps the settings", async () => {
    const name = await fresh({ failureThreshold: 2 });
    await fail(name, 2, "it hung up");
    expect(await store().change(name, "close", by)).toMatchObject({
      ...{ state: "CLOSED", openings: 1, lastError: "it hung up", cause: "manual" },
    });
    expect(await store().change(name, "reset", by)).toMatchObject({
      ...{ openings: 0, lastError: null, lastFailureAt: null, failureThreshold: 2 },
    });
  });

  it("raises a notification when it opens and when it closes, not for a relapse", async () => {
    await stage().sql("delete from millrace.notification");
    const raised = () =>
      stage().sql<{ kind: string; data: Record<string, unknown> }>(
        "select kind, data from millrace.notification order by id",
      );
    await opened();
    expect(await raised()).toEqual([]);
    await stage().sql(
      `insert into millrace.webhook (id, name, url, kinds, signing_key)
      values (gen_random_uuid(), 'w', 'https://example.com/', '{breaker.opened,breaker.closed}', sha256('x'))`,
    );
    const name = await opened();
    const probe = async (verdict: Verdict) => {
      const { breaker } = await store().askForProbe(name, "p");
      const { period } = breaker;
      await store().reportProbe(name, { period, probe: "p", verdict, error: null });
      await pass(name, 30_000);
    };
    await probe("failure");
    await probe("success");
    expect(await raised()).toMatchObject([
      { kind: "breaker.opened", data: { breaker: name, cause: "failures", failures: 5 } },
      { kind: "breaker.closed", data: { breaker: name, cause: "probe" } },
    ]);
    await stage().sql("delete from millrace.webhook");
  });

  it("tells other processes of changes and of the first failure in a row", async () => {
    const heard: number[] = [];
    const listener = await stage().store.listen((notice) => {
      if (notice.kind === "breaker") heard.push(notice.id);
    });
    const name = await fresh();
    const { id } = await store().ensure(name);
    await fail(name, 1);
    await fail(name, 1); // nobody needs to know
    await fail(name, 5);
    const marker = await fresh(); // comes after all of them
    const last = await store().ensure(marker);
    await expect.poll(() => heard.includes(last.id), { timeout: 30_000 }).toBe(true);
    expect(heard.filter((one) => one === id)).toHaveLength(3); // configured, failed, opened
    await listener.close();
  });
};

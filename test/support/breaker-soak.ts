// Must a platform that fails and recovers be called more often than its breaker allows? How does the
// backlog come back?

import { expect } from "vitest";
import { BreakerTrial } from "./breaker-trial.ts";
import { until } from "./until.ts";

export interface SoakOptions {
  readonly jobs: number;
  readonly concurrency: number;
  readonly openCooldownSeconds: number;
  readonly returnSpreadSeconds: number;
  readonly halfOpenProbeCount: number;
  /** So often a probe finds the platform still down. */
  readonly relapses: number;
  readonly timeoutMs: number;
}

const processes = 4;

export async function expectGentleBreaker(options: SoakOptions): Promise<void> {
  const { jobs, concurrency, relapses, timeoutMs, ...settings } = options;
  const { halfOpenProbeCount, returnSpreadSeconds } = settings;
  const trial = await BreakerTrial.create(settings);
  try {
    trial.platform = "down";
    await trial.start(processes, concurrency);
    await trial.enqueue(jobs);
    await until("all of them wait", async () => (await trial.waiting()).ready === 0, timeoutMs);
    await until(
      "it has relapsed so often",
      async () => (await trial.entered("OPEN")) > relapses,
      timeoutMs,
    );
    trial.platform = "up";
    await until(
      "it is closed",
      async () => (await trial.periods()).at(-1)?.state === "CLOSED",
      timeoutMs,
    );
    const planned = await trial.returns();
    await trial.allEnded(jobs, timeoutMs);

    const periods = await trial.periods();
    const probes = periods
      .filter(({ state }) => state === "HALF_OPEN")
      .map((period) => trial.during(period).length);
    expect(probes.length).toBeGreaterThan(relapses);
    expect(Math.max(...probes)).toBeLessThanOrEqual(halfOpenProbeCount);
    // Every handler that began made one call: whoever was refused, or made a probe that failed, has
    // spent nothing.
    const free = await trial.freeProbes();
    expect(await trial.attemptsSpent()).toBe(trial.calls.length - free);
    expect(free).toBeGreaterThanOrEqual(relapses);
    expect(free).toBeLessThanOrEqual(halfOpenProbeCount * probes.length);
    // In no tenth of the time do more than three times its share come back.
    const tenths = shares(planned, returnSpreadSeconds * 100);
    if (planned.length >= 60)
      expect(Math.max(...tenths)).toBeLessThan((3 * planned.length) / 10 + 10);

    const open = periods.filter(({ state }) => state === "OPEN");
    const closedAt = periods.at(-1)?.from ?? 0;
    const back = trial.calls.filter(({ at }) => at >= closedAt).map(({ at }) => at - closedAt);
    const perSecond = shares(back, 1_000);
    console.log(
      JSON.stringify({
        ...{ processes, jobs, ...settings, calls: trial.calls.length },
        attemptsSpent: await trial.attemptsSpent(),
        freeProbes: free,
        callsPerHalfOpen: probes,
        callsPerOpen: open.map((period) => trial.during(period).length),
        backlogAtClose: planned.length,
        callsPerSecondAfterClose: perSecond,
        meanIfSpread: Math.round(planned.length / returnSpreadSeconds),
        peak: Math.max(...perSecond),
      }),
    );
  } finally {
    await trial.close();
  }
}

function shares(times: readonly number[], widthMs: number): number[] {
  const last = Math.max(0, ...times);
  const counts = Array<number>(Math.floor(last / widthMs) + 1).fill(0);
  for (const at of times)
    counts[Math.floor(at / widthMs)] = (counts[Math.floor(at / widthMs)] ?? 0) + 1;
  return counts;
}

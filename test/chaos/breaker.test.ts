import { afterEach, expect, test } from "vitest";
import { expectGentleBreaker } from "../support/breaker-soak.ts";
import { BreakerTrial } from "../support/breaker-trial.ts";
import { until } from "../support/until.ts";

let trial: BreakerTrial | undefined;
afterEach(async () => {
  await trial?.close();
  trial = undefined;
});

test("four processes probe a failing platform no more than allowed, and come back gently", async () => {
  await expectGentleBreaker({
    ...{ jobs: 300, concurrency: 10, openCooldownSeconds: 2, returnSpreadSeconds: 5 },
    ...{ halfOpenProbeCount: 2, relapses: 2, timeoutMs: 50_000 },
  });
});

test("a process killed during its probe loses it after a while, and another one probes", async () => {
  trial = await BreakerTrial.create({
    ...{ failureThreshold: 3, openCooldownSeconds: 1, returnSpreadSeconds: 1 },
    ...{ probeTimeoutSeconds: 3 },
  });
  const platform = trial;
  platform.platform = "down";
  await trial.start(2, 5);
  await trial.enqueue(20);
  await until("it is open", async () => (await platform.entered("OPEN")) > 0);
  platform.platform = "hangs";
  const opens = (await trial.entered("OPEN")) - 1;
  const probe = await until("a probe is out", async () => {
    const halfOpen = (await platform.periods()).filter(({ state }) => state === "HALF_OPEN");
    const last = halfOpen.at(-1);
    return last?.to === Number.POSITIVE_INFINITY && halfOpen.length > opens
      ? platform.during(last)[0]
      : undefined;
  });
  platform.platform = "up";
  await trial.kill(probe.by);
  trial.release();
  await trial.allEnded(20, 50_000);
  const half = (await trial.periods()).filter(({ state }) => state === "HALF_OPEN").at(-1);
  if (half === undefined) throw new Error("it was never half open");
  // The one that died, and the one that took its place after the probe's time was over.
  expect(trial.during(half).map(({ by }) => by === probe.by)).toEqual([true, false]);
  expect(trial.calls.at(-1)?.by).not.toBe(probe.by);
  expect((await trial.millrace.breakers.get("platform"))?.state).toBe("CLOSED");
});

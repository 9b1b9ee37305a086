// A breaker's guard on a real store: what it asks PostgreSQL for, and what it does without it.

import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Millrace } from "../../src/index.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { Events } from "../../src/runtime/events.ts";
import type { BreakerStore } from "../../src/store/breaker.ts";
import { BreakerGuard } from "../../src/worker/breaker-guard.ts";
import { createGate } from "../support/gate.ts";
import { createDatabase } from "../support/postgres.ts";
import { openTestStore, type TestStore } from "../support/store.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

const newName = () => `b-${randomUUID().slice(0, 8)}`;
const down = () => {
  throw new Error("down");
};
const outcome = (call: Promise<unknown>) =>
  call.then(
    () => "passed",
    (error) => (error.code as string | undefined) ?? "failed",
  );

describe("on a store", () => {
  let stage: TestStore;
  beforeAll(async () => {
    stage = await openTestStore();
  });
  afterAll(() => stage.close());

  /** Counts what goes to PostgreSQL; everything still goes there. */
  function counted(store: BreakerStore) {
    const asked: string[] = [];
    const counting = new Proxy(store, {
      get: (target, verb: keyof BreakerStore) => {
        asked.push(verb);
        return target[verb];
      },
    });
    return { asked, counting };
  }
  const guardOf = (name: string, store: BreakerStore, clock = systemClock) => {
    const track = <T>(request: () => Promise<T>) => request();
    return new BreakerGuard({ name, store, track, clock, events: new Events() });
  };

  /** Time stands still unless it is told to go on. */
  function standing(start = 0) {
    let now = start;
    const clock = { ...systemClock, now: () => new Date(0), monotonic: () => now };
    return { clock, pass: (ms: number) => (now += ms) };
  }

  it("costs no round trip per call while it is closed, and one a second while it is used", async () => {
    const { asked, counting } = counted(stage.store.breakers);
    const { clock, pass } = standing();
    const guard = guardOf(newName(), counting, clock);
    for (let n = 0; n < 1_000; n++) await guard.run(() => n);
    expect(asked).toEqual(["ensure"]);
    for (let second = 0; second < 5; second++) {
      pass(1_001);
      await Promise.all(Array.from({ length: 100 }, () => guard.run(() => 1)));
      await guard.reread();
    }
    expect(asked.length).toBeLessThanOrEqual(1 + 5 * 3);
    await guard.close();
    expect(new Set(asked)).toEqual(new Set(["ensure"]));
  });

  it("reports a success that came while failures of others were being read", async () => {
    const { breakers } = stage.store;
    const name = newName();
    const { clock, pass } = standing();
    const guard = guardOf(name, breakers, clock);
    await guard.run(() => 1);
    const tally = { leading: 1, longest: 1, trailing: 1, succeeded: false };
    const { period } = await breakers.ensure(name);
    await breakers.report(name, { period, tally, error: "elsewhere" });
    pass(1_001);
    // It goes by its old copy, which is read again meanwhile.
    await guard.run(() => 1);
    await until("the count is 0", async () => (await breakers.find(name))?.failures === 0);
    // From then on it assumes that there may be more, for a second after each.
    for (let n = 0; n < 4; n++) {
      await breakers.report(name, { period, tally, error: "elsewhere" });
      pass(900);
      await guard.run(() => 1);
      expect((await breakers.find(name))?.failures).toBe(0);
    }
    await guard.close();
  });

  it("sends failures that come together in a few reports, and counts each of them", async () => {
    const { asked, counting } = counted(stage.store.breakers);
    const name = newName();
    await stage.store.breakers.configure(name, { failureThreshold: 1_000 });
    const guard = guardOf(name, counting);
    await guard.run(() => 1);
    await Promise.allSettled(Array.from({ length: 300 }, () => guard.run(down)));
    expect((await stage.store.breakers.find(name))?.failures).toBe(300);
    expect(asked.filter((verb) => verb === "report").length).toBeLessThanOrEqual(5);
  });

  it("asks nobody while it is open and the cool-down is not over", async () => {
    const { asked, counting } = counted(stage.store.breakers);
    const name = newName();
    await stage.store.breakers.configure(name, { failureThreshold: 1 });
    const guard = guardOf(name, counting);
    await expect(guard.run(down)).rejects.toThrow("down");
    const before = asked.length;
    const refused = await Promise.all(
      Array.from({ length: 50 }, () => outcome(guard.run(() => 1))),
    );
    expect(new Set(refused)).toEqual(new Set(["BREAKER_OPEN"]));
    expect(asked.length - before).toBeLessThanOrEqual(1);
  });

  it("never believes an old copy: what others did is known after five seconds at the latest", async () => {
    const { clock, pass } = standing(1e12);
    const name = newName();
    const guard = guardOf(name, stage.store.breakers, clock);
    await guard.run(() => 1);
    await stage.store.breakers.change(name, "open", { reason: "test", actor: "test" });
    expect(await outcome(guard.run(() => 1))).toBe("passed");
    pass(5_001);
    expect(await outcome(guard.run(() => 1))).toBe("BREAKER_OPEN");
    // With a short cool-down a copy is given up sooner: in half of it.
    const short = newName();
    await stage.store.breakers.configure(short, { openCooldownSeconds: 1 });
    const other = guardOf(short, stage.store.breakers, clock);
    await other.run(() => 1);
    await stage.store.breakers.change(short, "open", { reason: "test", actor: "test" });
    pass(501);
    expect(await outcome(other.run(() => 1))).toBe("BREAKER_OPEN");
  });

  it("is not confused by clocks that are wrong: only durations count", async () => {
    const name = newName();
    await stage.store.breakers.configure(name, { failureThreshold: 1 });
    const clocks = [standing(-1e9), standing(5e12)];
    const [behind, ahead] = clocks.map(({ clock }) =>
      guardOf(name, stage.store.breakers, clock),
    ) as [BreakerGuard, BreakerGuard];
    await ahead.run(() => 1);
    await expect(behind.run(down)).rejects.toThrow("down");
    await ahead.reread();
    expect(await outcome(ahead.run(() => 1))).toBe("BREAKER_OPEN");
    // One process believes that the cool-down is over; the database knows better.
    clocks[1]?.pass(40_000);
    expect(await outcome(ahead.run(() => 1))).toBe("BREAKER_OPEN");
    expect((await stage.store.breakers.find(name))?.state).toBe("OPEN");
    await stage.sql("update millrace.breaker set retry_at = now() where name = $1", [name]);
    clocks[0]?.pass(40_000);
    expect(await outcome(behind.run(() => 1))).toBe("passed");
    expect((await stage.store.breakers.find(name))?.state).toBe("CLOSED");
  });

  it("does not use a probe that was granted to it too long ago", async () => {
    const name = newName();
    await stage.store.breakers.configure(name, { failureThreshold: 1, probeTimeoutSeconds: 10 });
    const { clock, pass } = standing();
    const stalling = new Proxy(stage.store.breakers, {
      get: (target, verb: keyof BreakerStore) =>
        verb === "askForProbe"
          ? async (...asked: Parameters<BreakerStore["askForProbe"]>) => {
              const answer = await target.askForProbe(...asked);
              pass(10_000); // the process was stopped meanwhile
              return answer;
            }
          : target[verb],
    });
    const guard = guardOf(name, stalling, clock);
    await expect(guard.run(down)).rejects.toThrow("down");
    await stage.sql("update millrace.breaker set retry_at = now() where name = $1", [name]);
    pass(31_000);
    let calls = 0;
    expect(await outcome(guard.run(() => ++calls))).toBe("BREAKER_OPEN");
    expect(calls).toBe(0);
  });
});

describe("without PostgreSQL", () => {
  let database: Awaited<ReturnType<typeof createDatabase>>;
  let proxy: TcpProxy;
  let millrace: Millrace;
  beforeAll(async () => {
    database = await createDatabase();
    proxy = await TcpProxy.start(database.url);
    millrace = await Millrace.connect({ databaseUrl: proxy.url, logLevel: "silent" });
  });
  afterAll(async () => {
    proxy.open();
    await millrace.stop();
    await proxy.close();
    await database.drop();
  });

  it("lets calls pass that it has no reason to refuse, and reports them when it can", async () => {
    const name = newName();
    const breaker = millrace.breaker(name);
    await breaker.run(() => 1);
    proxy.refuse();
    for (let n = 0; n < 4; n++) expect(await outcome(breaker.run(down))).toBe("failed");
    const unknown = millrace.breaker(newName());
    expect(await outcome(unknown.run(() => 1))).toBe("passed");
    expect(await outcome(unknown.run(() => 1, { whenUnknown: "refuse" }))).toBe("BREAKER_OPEN");
    proxy.open();
    await until("what was kept is told with the next call", async () => {
      await outcome(breaker.run(down));
      return (await millrace.breakers.get(name))?.state === "OPEN";
    });
  });

  it("goes on refusing what it knows to be open, and gives the caller an answer when all is silent", async () => {
    const name = newName();
    const breaker = millrace.breaker(name);
    await millrace.breakers.configure(name, { failureThreshold: 1, openCooldownSeconds: 0.1 });
    expect(await outcome(breaker.run(down))).toBe("failed");
    proxy.silence();
    await until("it must ask for a probe, and nobody answers", async () => {
      return (await outcome(breaker.run(() => 1))) === "BREAKER_OPEN";
    });
    const other = millrace.breaker(newName());
    expect(await other.run(() => "unknown, so let through")).toContain("unknown");
    proxy.open();
    await until("it closes", async () => (await outcome(breaker.run(() => 1))) === "passed");
  });

  it("tells a probe's end when the answer can be given", async () => {
    const name = newName();
    const breaker = millrace.breaker(name);
    await millrace.breakers.configure(name, { failureThreshold: 1, openCooldownSeconds: 0.1 });
    expect(await outcome(breaker.run(down))).toBe("failed");
    const { opened, open } = createGate();
    let isOut = false;
    const probing = until("a probe ends well", () =>
      outcome(
        breaker.run(() => {
          isOut = true;
          return opened;
        }),
      ).then((how) => how === "passed"),
    );
    await until("a probe is out", () => isOut);
    proxy.refuse();
    open();
    await probing;
    proxy.open();
    await until("it is closed", async () => {
      return (await millrace.breakers.get(name).catch(() => null))?.state === "CLOSED";
    });
  });

  it("loses no probe when only the answer to its request was lost", async () => {
    const name = newName();
    const breaker = millrace.breaker(name);
    await millrace.breakers.configure(name, { failureThreshold: 1, openCooldownSeconds: 0.1 });
    expect(await outcome(breaker.run(down))).toBe("failed");
    let isLost = false;
    void proxy.loseAnswer("client", "ask_for_probe").then(() => {
      isLost = true;
    });
    await until("somebody asks", async () => {
      expect(await outcome(breaker.run(() => 1))).toBe("BREAKER_OPEN");
      return isLost;
    });
    await until("the same probe is asked for again", async () => {
      return (await outcome(breaker.run(() => 1))) === "passed";
    });
    expect((await millrace.breakers.get(name))?.state).toBe("CLOSED");
  });
});

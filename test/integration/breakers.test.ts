import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import {
  BreakerOpenError,
  type Millrace,
  NonRetryableError,
  RateLimitedError,
  Snooze,
} from "../../src/index.ts";
import { createGate } from "../support/gate.ts";
import { refusal, useMillrace } from "../support/instance.ts";
import { until } from "../support/until.ts";

const instances = useMillrace({ webhooks: { allowInsecureLoopback: true } });
const newName = () => `b-${randomUUID().slice(0, 8)}`;
const down = () => {
  throw new Error("the platform is down");
};

/** Lets the cool-down (and the time of every probe) pass, and every instance know it. */
async function passTime(name: string, seconds: number, ...all: Millrace[]): Promise<void> {
  await instances.query(
    `update millrace.breaker b set retry_at = retry_at - $2 * interval '1 s', probes = (
      select coalesce(jsonb_object_agg(key, value::text::float8 - $2::float8), '{}') from jsonb_each(b.probes)
    ) where name = $1`,
    [name, seconds],
  );
  for (const one of [instances.millrace, ...all]) await one.breakers.reread();
}

async function trip(name: string, millrace = instances.millrace): Promise<void> {
  const { failureThreshold = 5 } = (await millrace.breakers.get(name)) ?? {};
  for (let n = 0; n < failureThreshold; n++)
    await expect(millrace.breaker(name).run(down)).rejects.toThrow("the platform is down");
}

const stateOf = async (name: string) => (await instances.millrace.breakers.get(name))?.state;

describe("a call through a breaker", () => {
  it("gives what the function gives, and throws what it throws, at once or later", async () => {
    const breaker = instances.millrace.breaker(newName());
    expect(await breaker.run(() => 7)).toBe(7);
    expect(await breaker.run(async () => "later")).toBe("later");
    const error = new Error("mine");
    const throwing = () => {
      throw error;
    };
    for (const fails of [throwing, async () => throwing()])
      await expect(breaker.run(fails)).rejects.toBe(error);
    await expect(breaker.run(() => Promise.reject(undefined))).rejects.toBeUndefined();
  });

  it("is refused after so many failures in a row, and not made", async () => {
    const name = newName();
    const breaker = instances.millrace.breaker(name);
    const opened = instances.millrace.events.once("breaker.opened", (e) => e.breaker === name);
    await trip(name);
    let calls = 0;
    const refused = await refusal(breaker.run(() => ++calls));
    expect(refused).toBeInstanceOf(BreakerOpenError);
    expect(refused.code).toBe("BREAKER_OPEN");
    const { retryAfterMs } = refused as BreakerOpenError;
    expect(retryAfterMs > 0 && retryAfterMs <= 30_000).toBe(true);
    expect(refused.details).toEqual({ breaker: name, retryAfterMs });
    expect(calls).toBe(0);
    expect(await opened).toMatchObject({ cause: "failures", failures: 5 });
    expect(await instances.millrace.breakers.get(name)).toMatchObject({
      ...{ state: "OPEN", openings: 1, cause: "failures", lastError: "the platform is down" },
    });
  });

  it("counts failures over all processes, and a success anywhere that knows of them resets", async () => {
    const name = newName();
    const others = [await instances.connect(), await instances.connect()];
    const [a, b] = others.map((one) => one.breaker(name));
    if (a === undefined || b === undefined) throw new Error("no breakers");
    for (const one of [a, a, b, b]) await expect(one.run(down)).rejects.toThrow();
    await a.run(() => "fine");
    await until("the count is 0", async () => {
      return (await instances.millrace.breakers.get(name))?.failures === 0;
    });
    for (const one of [a, b, a, b]) await expect(one.run(down)).rejects.toThrow();
    expect(await stateOf(name)).toBe("CLOSED");
    await expect(b.run(down)).rejects.toThrow();
    expect(await stateOf(name)).toBe("OPEN");
  });

  it("counts in a row over all processes: what one does after another, it knows", async () => {
    const name = newName();
    await instances.millrace.breakers.configure(name, { failureThreshold: 3 });
    const [a, b] = [await instances.connect(), await instances.connect()];
    const states = [];
    for (let n = 0; n < 6; n++) {
      await expect(a.breaker(name).run(down)).rejects.toThrow("down");
      await b.breaker(name).run(() => "fine");
      states.push((await instances.millrace.breakers.get(name))?.failures);
    }
    expect(states).toEqual([0, 0, 0, 0, 0, 0]);
    expect(await stateOf(name)).toBe("CLOSED");
  });

  it("counts rate limits, and neither a clear no nor a snooze nor what the caller gave up", async () => {
    const name = newName();
    const breaker = instances.millrace.breaker(name);
    const fail = (error: unknown) =>
      expect(breaker.run(() => Promise.reject(error))).rejects.toBe(error);
    const limited = new RateLimitedError("slow down");
    for (let n = 0; n < 4; n++) await fail(limited);
    await fail(new Snooze(10));
    const caller = new AbortController();
    const gaveUp = breaker.run(
      () => {
        caller.abort();
        throw new Error("gave up");
      },
      { signal: caller.signal },
    );
    await expect(gaveUp).rejects.toThrow("gave up");
    const before = breaker.run(() => "called", { signal: AbortSignal.abort("too late") });
    await expect(before).rejects.toBe("too late");
    expect((await instances.millrace.breakers.get(name))?.failures).toBe(4);
    await fail(limited);
    expect(await stateOf(name)).toBe("OPEN");

    const other = newName();
    const patient = instances.millrace.breaker(other);
    for (let n = 0; n < 6; n++) {
      const no = patient.run(() => Promise.reject(new NonRetryableError("no such customer")));
      await expect(no).rejects.toThrow();
      const classified = patient.run(down, { classify: () => "non_retryable" });
      await expect(classified).rejects.toThrow();
    }
    expect(await stateOf(other)).toBe("CLOSED");
  });

  it("made within another through the same breaker belongs to it", async () => {
    const name = newName();
    const breaker = instances.millrace.breaker(name);
    const twice = breaker.run(() => breaker.run(down));
    await expect(twice).rejects.toThrow("the platform is down");
    expect((await instances.millrace.breakers.get(name))?.failures).toBe(1);
    for (let n = 0; n < 4; n++) await expect(breaker.run(down)).rejects.toThrow();
    await passTime(name, 30);
    const other = instances.millrace.breaker(newName());
    const nested = breaker.run(() => other.run(() => breaker.run(() => "probed")));
    expect(await nested).toBe("probed");
    expect(await stateOf(name)).toBe("CLOSED");
  });

  it("that outlives the call it was begun in stands for itself", async () => {
    const name = newName();
    const breaker = instances.millrace.breaker(name);
    const { opened, open } = createGate();
    let later: Promise<unknown> = Promise.resolve();
    await breaker.run(() => {
      later = opened.then(() => breaker.run(() => "slipped through"));
      later.catch(() => {});
    });
    await trip(name);
    open();
    expect((await refusal(later)).code).toBe("BREAKER_OPEN");
  });
});

describe("a half-open breaker", () => {
  it("lets so many probes through, from all processes together, and closes with a success", async () => {
    const name = newName();
    await instances.millrace.breakers.configure(name, { halfOpenProbeCount: 2 });
    const others = [await instances.connect(), await instances.connect()];
    await trip(name);
    await passTime(name, 30, ...others);
    const { opened, open } = createGate();
    let calls = 0;
    const probe = async () => {
      calls++;
      await opened;
    };
    const all = [instances.millrace, ...others].flatMap((one) =>
      Array.from({ length: 10 }, () => one.breaker(name).run(probe)),
    );
    const ended = Promise.allSettled(all);
    let refused = 0;
    for (const one of all) one.catch(() => refused++);
    await until("two are out and the others were refused", () => calls === 2 && refused === 28);
    expect(await stateOf(name)).toBe("HALF_OPEN");
    open();
    await ended;
    expect(calls).toBe(2);
    expect(await instances.millrace.breakers.get(name)).toMatchObject({
      ...{ state: "CLOSED", failures: 0, cause: "probe" },
    });
  });

  it("opens again with a failed probe, and hears nothing from calls of an earlier time", async () => {
    const name = newName();
    const breaker = instances.millrace.breaker(name);
    const { opened, open } = createGate();
    const slow = [breaker.run(() => opened), breaker.run(() => opened.then(down))];
    const ended = Promise.allSettled(slow);
    await trip(name);
    await passTime(name, 30);
    await expect(breaker.run(down)).rejects.toThrow("the platform is down");
    expect(await instances.millrace.breakers.get(name)).toMatchObject({
      ...{ state: "OPEN", openings: 2, cause: "probe" },
    });
    open();
    await ended;
    expect(await stateOf(name)).toBe("OPEN");
    expect((await refusal(breaker.run(() => 1))).code).toBe("BREAKER_OPEN");
  });

  it("grants a probe that never ends to another after its time, and listens to that one", async () => {
    const name = newName();
    const other = await instances.connect();
    await trip(name);
    await passTime(name, 30, other);
    const { opened, open } = createGate();
    const hangs = instances.millrace.breaker(name).run(() => opened.then(down));
    hangs.catch(() => {});
    await until("it probes", async () => (await stateOf(name)) === "HALF_OPEN");
    await other.breakers.reread();
    expect((await refusal(other.breaker(name).run(() => 1))).code).toBe("BREAKER_OPEN");
    await passTime(name, 60, other);
    expect(await other.breaker(name).run(() => "here")).toBe("here");
    expect(await stateOf(name)).toBe("CLOSED");
    open();
    await expect(hangs).rejects.toThrow("the platform is down");
    expect(await instances.millrace.breakers.get(name)).toMatchObject({
      ...{ state: "CLOSED", failures: 0 },
    });
  });

  it("gets the probe back from a process that stops, or that learnt nothing", async () => {
    const name = newName();
    const other = await instances.connect();
    await trip(name);
    await passTime(name, 30, other);
    void other.breaker(name).run(() => new Promise(() => {}));
    await until("it probes", async () => (await stateOf(name)) === "HALF_OPEN");
    await other.stop();
    await instances.millrace.breakers.reread();
    const breaker = instances.millrace.breaker(name);
    await expect(breaker.run(() => Promise.reject(new Snooze(1)))).rejects.toThrow();
    expect(await breaker.run(() => "mine")).toBe("mine");
    expect(await stateOf(name)).toBe("CLOSED");
  });
});

it("a stopped instance makes no calls", async () => {
  const other = await instances.connect();
  const breaker = other.breaker(newName());
  await breaker.run(() => 1);
  await other.stop();
  expect((await refusal(breaker.run(() => 1))).code).toBe("STOPPED");
});

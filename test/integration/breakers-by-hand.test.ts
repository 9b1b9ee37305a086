import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { defineJob } from "../../src/index.ts";
import { newQueue, refusal, useMillrace } from "../support/instance.ts";
import { Receiver } from "../support/receiver.ts";

const instances = useMillrace({ webhooks: { allowInsecureLoopback: true } });
const newName = () => `b-${randomUUID().slice(0, 8)}`;

describe("a breaker, by hand", () => {
  it("opens until it is closed, resets, and needs a reason and a known name", async () => {
    const name = newName();
    const { breakers } = instances.millrace;
    const breaker = instances.millrace.breaker(name);
    expect((await refusal(breakers.open(name, "maintenance"))).code).toBe("BREAKER_NOT_FOUND");
    await breaker.run(() => 1);
    expect(await breakers.open(name, "maintenance", "ann")).toMatchObject({
      ...{ state: "OPEN", cause: "manual", reason: "maintenance", retryAfterMs: null },
    });
    expect((await refusal(breaker.run(() => 1))).code).toBe("BREAKER_OPEN");
    expect((await breakers.close(name, "it is over")).state).toBe("CLOSED");
    expect(await breaker.run(() => 2)).toBe(2);
    expect((await breakers.reset(name, "new year")).openings).toBe(0);
    for (const bad of ["", "  ", "a\u0000b", "x".repeat(2_001), undefined, 7] as string[])
      for (const action of ["open", "close", "reset"] as const)
        expect((await refusal(breakers[action](name, bad))).code).toBe("REASON_REQUIRED");
    const trail = await instances.query(
      "select actor, action, reason from millrace.audit where target = $1 order by id",
      [name],
    );
    expect(trail).toEqual([
      { actor: "ann", action: "breaker_open", reason: "maintenance" },
      { actor: "api", action: "breaker_close", reason: "it is over" },
      { actor: "api", action: "breaker_reset", reason: "new year" },
    ]);
  });

  it("refuses names and settings that make no sense", async () => {
    const { millrace } = instances;
    for (const bad of ["", "a\nb", "\u0000", "x".repeat(201), undefined, 7, null] as string[]) {
      expect(() => millrace.breaker(bad)).toThrow("A breaker's name must be");
      expect((await refusal(millrace.breakers.get(bad))).code).toBe("OPTION_INVALID");
      if (bad !== undefined)
        expect(() => defineJob({ type: "t", platform: bad })).toThrow("A job's platform must be");
    }
    const settings: object[] = [
      ...[{ failureThreshold: 0 }, { failureThreshold: 1.5 }, { failureThreshold: "5" }],
      ...[{ openCooldownSeconds: 0 }, { openCooldownSeconds: Number.NaN }, { cooldown: 3 }],
      ...[{ halfOpenProbeCount: 0 }, { probeTimeoutSeconds: -1 }, { returnSpreadSeconds: -1 }],
      ...[{ openCooldownSeconds: Number.POSITIVE_INFINITY }, { failureThreshold: null }],
      ...[{ toString: 1 }, [] as object],
    ];
    for (const bad of [...settings, null as unknown as object])
      expect((await refusal(millrace.breakers.configure(newName(), bad))).code).toBe(
        "OPTION_INVALID",
      );
    const noFunction = millrace.breaker(newName()).run(7 as never);
    expect((await refusal(noFunction)).code).toBe("OPTION_INVALID");
    const noOptions = millrace.breaker(newName()).run(() => 1, null as never);
    expect((await refusal(noOptions)).code).toBe("OPTION_INVALID");
    const odd = `ünïcode "quoted" 'x' ${newName()}`;
    expect(await millrace.breaker(odd).run(() => 1)).toBe(1);
    const configured = await millrace.breakers.configure(odd, { returnSpreadSeconds: 5 });
    expect(configured.returnSpreadSeconds).toBe(5);
    const back = await millrace.breakers.configure(odd, { returnSpreadSeconds: null });
    expect(back.returnSpreadSeconds).toBeNull();
    expect((await millrace.breakers.list()).map(({ name }) => name)).toContain(odd);
  });

  it("is heard of by a worker's process at once", async () => {
    const name = newName();
    const other = await instances.connect();
    const job = defineJob({ type: "x", queue: newQueue(), platform: name, run: () => 1 });
    await other.work([job]);
    await other.breaker(name).run(() => 1);
    const heard = other.events.once("breaker.opened", (event) => event.breaker === name);
    await instances.millrace.breakers.open(name, "maintenance");
    expect(await heard).toMatchObject({ cause: "manual", reason: "maintenance" });
  });

  it("is told to webhooks, opening and closing once each", async () => {
    const name = newName();
    const teller = await instances.connect();
    const receiver = await Receiver.start();
    const { secret } = await teller.webhooks.create({ url: receiver.url });
    receiver.secrets.push(secret);
    await teller.notifications.start();
    await teller.breakers.configure(name, {});
    await teller.breakers.open(name, "maintenance");
    await teller.breakers.open(name, "still");
    await teller.breakers.close(name, "over");
    const received = await receiver.hears(2);
    const told = received.map(({ told: { kind, data } }) => [kind, data.breaker, data.reason]);
    expect(told.sort()).toEqual([
      ["breaker.closed", name, "over"],
      ["breaker.opened", name, "maintenance"],
    ]);
    await receiver.close();
  });
});

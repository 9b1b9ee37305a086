// Jobs outlive deployments: how a payload is built is said by its version.

import { describe, expect, it } from "vitest";
import * as z from "zod";
import { defineJob } from "../../src/index.ts";
import { newQueue, refusal, useMillrace } from "../support/instance.ts";

const instances = useMillrace();

describe("the version of a payload", () => {
  it("is lifted by upcasters from the version it was stored with", async () => {
    const { millrace } = instances;
    const queue = newQueue();
    const v2 = defineJob({
      type: "typed.upcast",
      queue,
      payloadVersion: "2.0",
      payload: z.object({ fullName: z.string() }),
      upcasters: {
        "1.0": { to: "1.1", up: (p: { first: string }) => ({ ...p, last: "Unknown" }) },
        "1.1": {
          to: "2.0",
          up: (p: { first: string; last: string }) => ({ fullName: `${p.first} ${p.last}` }),
        },
      },
      run: ({ payload }) => payload.fullName,
    });
    const v1 = defineJob({ type: v2.type, queue });
    const v11 = defineJob({ type: v2.type, queue, payloadVersion: "1.1" });
    const v3 = defineJob({ type: v2.type, queue, payloadVersion: "3.0" });
    const ids = [
      (await millrace.enqueue(v1, { first: "Ada" })).id,
      (await millrace.enqueue(v11, { first: "Alan", last: "Turing" })).id,
      (await millrace.enqueue(v2, { fullName: "Grace Hopper" })).id,
      (await millrace.enqueue(v3, { unknown: true })).id,
    ];
    await instances.work([v2]);
    const ended = await Promise.all(ids.map((id) => millrace.waitFor(id)));
    expect(ended.slice(0, 3).map(({ result }) => result)).toEqual([
      "Ada Unknown",
      "Alan Turing",
      "Grace Hopper",
    ]);
    expect(ended[3]).toMatchObject({ state: "dead", payload: { unknown: true } });
    expect(ended[3]?.error?.message).toContain("payload_version_too_new");
    expect(ended[0]?.payload).toEqual({ first: "Ada" });
  });

  it("is refused when it says of its version something else than its definition", async () => {
    const { millrace } = instances;
    const job = (payloadVersion: string) =>
      defineJob({ type: "versions.two", queue: newQueue(), payloadVersion });
    for (const [defined, said] of [
      ["2.0", "3.0"],
      ["2.0", "1.0"],
      ["1.0", "2.0"],
      ["2.0", 2],
    ] as const) {
      const { code, details } = await refusal(
        millrace.enqueue(job(defined), { payload_version: said }),
      );
      expect(code).toBe("PAYLOAD_INVALID");
      expect(details).toMatchObject({
        problems: [{ code: "payload_version_contradicted", path: "$.payload_version" }],
      });
    }
    const two = job("2.0");
    for (const payload of [{ payload_version: "2.0" }, {}]) await millrace.enqueue(two, payload);
    const again = millrace.enqueueMany(two, [{}, { payload_version: "1.0" }]);
    expect((await refusal(again)).code).toBe("PAYLOAD_INVALID");
  });

  it("is of the handler's version where the handler names one, with upcasters or without", async () => {
    const { millrace } = instances;
    const queue = newQueue();
    const run = ({ payload }: { payload: unknown }) => payload;
    const named = defineJob({ type: "typed.named", queue, payloadVersion: "2.0", run });
    const lifts = { "0.9": { to: "1.0", up: () => "lifted" } };
    const lifted = defineJob({ type: "typed.lifted", queue, upcasters: lifts, run });
    const silent = defineJob({ type: "typed.silent", queue, run });
    const made = (type: string, payloadVersion: string) =>
      defineJob({ type, queue, payloadVersion });
    const ids = [
      (await millrace.enqueue(made(named.type, "2.0"), "same")).id,
      (await millrace.enqueue(made(named.type, "3.0"), "newer")).id,
      (await millrace.enqueue(made(named.type, "1.0"), "older")).id,
      (await millrace.enqueue(made(lifted.type, "1.1"), "newer")).id,
      (await millrace.enqueue(made(silent.type, "9.9"), "no claim")).id,
    ];
    await instances.work([named, lifted, silent]);
    const ended = await Promise.all(ids.map((id) => millrace.waitFor(id)));
    const told = ended.map(({ result, error }) => error?.message.split(":")[0] ?? result);
    expect(told).toEqual([
      "same",
      "payload_version_too_new",
      "upcaster_missing",
      "payload_version_too_new",
      "no claim",
    ]);
  });
});

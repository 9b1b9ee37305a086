import { describe, expect, it } from "vitest";
import { defineJob } from "../../src/index.ts";
import { enqueuedIn, newQueue, refusal, useMillrace } from "../support/instance.ts";

const instances = useMillrace();

describe("a payload that cannot be judged, or is none,", () => {
  const broken: [string, () => unknown][] = [
    ["throws", () => JSON.parse("{")],
    ["rejects", async () => JSON.parse("{")],
    ["answers nothing", () => undefined],
    ["answers nothing later", async () => null],
    ["answers with a text for issues", () => ({ issues: "x" })],
    ["answers with an issue that is none", async () => ({ issues: [null] })],
    ["answers with an issue that says nothing", () => ({ issues: [{}] })],
    [
      "answers with a path that leads nowhere",
      () => ({ issues: [{ message: "x", path: [null] }] }),
    ],
  ];
  it.each(broken)(
    "is refused by a schema that %s, and its run fails as runs do",
    async (_, ask) => {
      const { millrace } = instances;
      const validate = ask as () => { value: unknown };
      const schema = { "~standard": { version: 1 as const, vendor: "mine", validate } };
      const type = "typed.broken";
      const job = defineJob({ type, queue: newQueue(), payload: schema, maxAttempts: 1, run() {} });
      const error = await refusal(millrace.enqueue(job, 1));
      expect([error.code, error.message]).toEqual([
        "PAYLOAD_INVALID",
        expect.stringMatching(/schema/),
      ]);
      expect(error.cause).toBeInstanceOf(Error);
      const { id } = await millrace.enqueue(
        defineJob({ type, queue: job.queue, maxAttempts: 1 }),
        1,
      );
      await instances.work([job]);
      expect(await millrace.waitFor(id)).toMatchObject({ state: "dead", attempt: 1 });
    },
  );

  it("is no hole in a list", async () => {
    const { millrace } = instances;
    const job = defineJob({ type: "untyped", queue: newQueue() });
    // biome-ignore lint/suspicious/noSparseArray: the hole is the point.
    const error = await refusal(millrace.enqueueMany(job, [1, , 2]));
    expect([error.code, error.message]).toEqual(["PAYLOAD_INVALID", expect.stringMatching(/1/)]);
    expect(await enqueuedIn(millrace, job.queue)).toBe(0);
    const { id } = await millrace.enqueue(job, undefined);
    expect(await millrace.get(id)).toMatchObject({ payload: null });
  });
});

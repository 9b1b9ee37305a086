import { describe, expect, it } from "vitest";
import { defineJob, Snooze } from "../../src/index.ts";
import { createGate } from "../support/gate.ts";
import { newQueue, useMillrace } from "../support/instance.ts";

// Polls and renewals that never come: whatever happens here was announced.
const instances = useMillrace({ pollMs: 600_000, leaseMs: 900_000, renewMs: 600_000 });

describe("without waiting for the poll", () => {
  it("a retry and a snooze start when they are due", async () => {
    const { millrace } = instances;
    let runs = 0;
    const job = defineJob({
      type: "again",
      queue: newQueue(),
      retry: () => 30,
      run: () => {
        runs++;
        if (runs === 1) throw new Error("once");
        if (runs === 2) throw new Snooze(30);
        return runs;
      },
    });
    await instances.work([job]);
    expect(await millrace.result((await millrace.enqueue(job, 1)).id)).toBe(3);
  });

  it("delayed jobs start in one instance although another may have made them ready", async () => {
    const { millrace } = instances;
    const other = await instances.connect();
    await other.work([defineJob({ type: "bystander", queue: newQueue(), run: () => 1 })]);
    const job = defineJob({ type: "later", queue: newQueue(), run: ({ payload }) => payload });
    await instances.work([job]);
    for (let n = 0; n < 20; n++) {
      const { id } = await millrace.enqueue(job, n, { delayMs: 20 });
      expect(await millrace.result(id)).toBe(n);
    }
  });

  it("a job that a stopping worker gave back starts in another instance", async () => {
    const { millrace } = instances;
    const other = await instances.connect();
    const never = createGate();
    const job = defineJob({ type: "given.back", queue: newQueue(), run: () => never.opened });
    const worker = await instances.work([job], { drainMs: 0 });
    const started = millrace.events.once("job.started");
    const { id } = await millrace.enqueue(job, 1);
    await started;
    await other.work([{ ...job, run: () => "elsewhere" }]);
    await worker.stop();
    expect(await millrace.result(id)).toBe("elsewhere");
    never.open();
  });

  it("a reprocessed job, a resumed queue and a cancel reach other instances", async () => {
    const { millrace } = instances;
    const other = await instances.connect();
    let broken = true;
    const job = defineJob({
      type: "reached",
      queue: newQueue(),
      maxAttempts: 1,
      run: ({ payload, signal }) => {
        if (payload === "hang")
          return new Promise((_, reject) => {
            signal.addEventListener("abort", () => reject(signal.reason));
          });
        if (broken) throw new Error("broken");
        return "fine";
      },
    });
    await other.work([job]);
    const { id } = await millrace.enqueue(job, 1);
    await millrace.waitFor(id);
    broken = false;
    const again = await millrace.reprocess(id, "repaired");
    expect(await millrace.result(again.id)).toBe("fine");
    await millrace.pauseQueue(job.queue);
    const paused = await millrace.enqueue(job, 2);
    await millrace.resumeQueue(job.queue);
    expect(await millrace.result(paused.id)).toBe("fine");
    const started = other.events.once("job.started");
    const hanging = await millrace.enqueue(job, "hang");
    await started;
    await millrace.cancel(hanging.id);
    expect(await millrace.waitFor(hanging.id)).toMatchObject({ state: "cancelled" });
  });
});

import { expect, test } from "vitest";
import { type ClaimedJob, defineJob } from "../../src/index.ts";
import { newQueue, useMillrace } from "../support/instance.ts";
import { until } from "../support/until.ts";

const instances = useMillrace();

test("a handler is shown the same of its job, whichever way it came", async () => {
  const { millrace } = instances;
  const seen: ClaimedJob[] = [];
  const job = defineJob({
    type: "seen",
    queue: newQueue(),
    maxAttempts: 2,
    retry: { baseMs: 1, capMs: 1 },
    run: ({ job: shown, payload }) => {
      seen.push({ ...shown });
      expect(shown.payload).toEqual(payload);
      if (payload === "again" && shown.attempt === 1) throw new Error("once more");
    },
  });
  const claimed = await millrace.enqueue(job, { way: "claimed" });
  await instances.work([job]);
  await millrace.waitFor(claimed.id);
  const events: string[] = [];
  // An idle worker takes what is enqueued beside it.
  await until("one was claimed with its enqueue", async () => {
    const { id } = await millrace.enqueue(job, { way: "inserted" });
    const ended = await millrace.waitFor(id);
    if (+(ended.startedAt ?? 0) === +ended.createdAt) events.push(id);
    return events.length > 0;
  });
  const again = await millrace.enqueue(job, "again");
  await millrace.waitFor(again.id);
  const shapes = new Set(seen.map((one) => Object.keys(one).join(" ")));
  expect([...shapes]).toEqual([
    "id type tenant queueId payload attempt maxAttempts crashCount maxRuntimeMs correlationId idempotencyKey reference meta timeline token createdAt readyAt startedAt",
  ]);
  for (const one of seen) {
    expect(one.createdAt).toBeInstanceOf(Date);
    expect(one.startedAt).toBeInstanceOf(Date);
    expect(JSON.parse(JSON.stringify(one)).payload).toEqual(one.payload);
  }
  expect(seen.at(0)?.payload).toEqual({ way: "claimed" });
  expect(seen.at(-1)).toMatchObject({ id: again.id, attempt: 2, payload: "again" });
  expect(seen.find(({ id }) => id === events[0])?.payload).toEqual({ way: "inserted" });
});

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { NonRetryableError } from "../../src/domain/error-class.ts";
import type { ItemOutcome, TriggerSession } from "../../src/store/triggers.ts";
import { refusal } from "../support/instance.ts";
import { type Claim, dead, released, type Topic } from "./stage.ts";
import { itemRunner, settleItem as settle } from "./trigger-stage.ts";

export const triggerSettle: Topic = (stage) => {
  let session: TriggerSession;
  beforeAll(() => {
    session = stage().store.triggerSession({ maxAttempts: 5 });
  });
  afterAll(() => session.close());

  const running = (count: number) => itemRunner(stage(), session, count);
  const states = async (itemIds: readonly string[]) =>
    Promise.all(itemIds.map((id) => stage().stateOf(id)));
  const settleItem = (job: Claim, itemId: string, outcome: ItemOutcome) =>
    settle(stage(), job, itemId, outcome);

  describe("an item settled by the handler", () => {
    it("ends as it says, whatever becomes of the job", async () => {
      const { job, items, jobId } = await running(4);
      const [done = "", failed = "", hopeless = "", back = ""] = items;
      const result = { kind: "completed", result: { n: 1 } } as const;
      expect(await settleItem(job, done, result)).toBe("completed");
      expect(await settleItem(job, failed, { kind: "failed", error: new Error("no") })).toBe(
        "retried",
      );
      const never = { kind: "failed", error: new NonRetryableError("never") } as const;
      expect(await settleItem(job, hopeless, never)).toBe("dead");
      expect(await settleItem(job, back, { kind: "released" })).toBe("released");
      expect(await states(items)).toEqual(["completed", "scheduled", "dead", "ready"]);
      expect(await stage().find(done)).toMatchObject({ result: { n: 1 } });
      expect(await stage().find(back)).toMatchObject({ attempt: 0 });
      await stage().settle(job, dead);
      expect(await session.endBatches(100)).toEqual([{ jobId, items: 0 }]);
      expect(await states(items)).toEqual(["completed", "scheduled", "dead", "ready"]);
    });

    it("comes back with a spent attempt and dies when they are gone", async () => {
      const { job, items, trigger } = await running(1);
      const [item = ""] = items;
      const failure = { kind: "failed", error: new Error("no") } as const;
      expect(await settleItem(job, item, failure)).toBe("retried");
      await stage().sql("update millrace.scheduled_job set due_at = now() where id = $1", [item]);
      await stage().promoteAll();
      await stage().sql("update millrace.trigger set next_fire_at = now() where id = $1", [
        trigger.id,
      ]);
      await session.fire(trigger.id);
      const [second] = await stage().claim(trigger.jobQueueId);
      expect(second?.payload).toMatchObject({ queue_item_ids: [item] });
      if (second !== undefined) expect(await settleItem(second, item, failure)).toBe("dead");
      expect(await stage().find(item)).toMatchObject({ state: "dead", attempt: 2 });
    });

    it("may be settled again in the same way, and not in another", async () => {
      const { job, items } = await running(2);
      const [done = "", failed = ""] = items;
      const failure = { kind: "failed", error: new Error("no") } as const;
      await settleItem(job, done, { kind: "completed" });
      await settleItem(job, failed, failure);
      expect(await settleItem(job, done, { kind: "completed" })).toBe("completed");
      expect(await settleItem(job, failed, failure)).toBe("retried");
      const other = settleItem(job, done, { kind: "released" });
      expect((await refusal(other)).code).toBe("ITEM_NOT_HELD");
    });

    it("may be settled again by the next run of its job", async () => {
      const { job, items, trigger } = await running(1);
      await settleItem(job, items[0] ?? "", { kind: "completed" });
      await stage().settle(job, released);
      const [again] = await stage().claim(trigger.jobQueueId);
      expect(again?.id).toBe(job.id);
      if (again === undefined) return;
      expect(await settleItem(again, items[0] ?? "", { kind: "completed" })).toBe("completed");
    });

    it("is refused to a handler that no longer holds the job", async () => {
      const { job, items } = await running(1);
      await stage().settle(job, released);
      const late = settleItem(job, items[0] ?? "", { kind: "completed" });
      expect((await refusal(late)).code).toBe("STALE_TOKEN");
      expect(await states(items)).toEqual(["running"]);
    });

    it("is refused when it is another job's", async () => {
      const mine = await running(1);
      const theirs = await running(1);
      const wrong = settleItem(mine.job, theirs.items[0] ?? "", { kind: "completed" });
      expect((await refusal(wrong)).code).toBe("ITEM_NOT_HELD");
    });
  });
};

import { expect, it } from "vitest";
import type { Notice } from "../../src/store/store.ts";
import { until } from "../support/until.ts";
import type { Topic } from "./stage.ts";

export const notices: Topic = (stage) => {
  async function heardDuring(act: () => Promise<unknown>, kind: Notice["kind"]): Promise<Notice> {
    const heard: Notice[] = [];
    const listener = await stage().store.listen((notice) => heard.push(notice));
    await act();
    const found = await until(`a notice of kind ${kind}`, () => heard.find((n) => n.kind === kind));
    await listener.close();
    return found;
  }

  it("tell of ready jobs, late ones and due times", async () => {
    const texts = stage().store.notices;
    const say = (text: string) => () => stage().ready.notify(text);
    expect(await heardDuring(say(texts.ready([3, 4])), "ready")).toEqual({
      ...{ kind: "ready", queueIds: [3, 4], late: false },
    });
    expect(await heardDuring(say(texts.late([5])), "ready")).toEqual({
      ...{ kind: "ready", queueIds: [5], late: true },
    });
    expect(await heardDuring(say(texts.due(12.4)), "due")).toEqual({ kind: "due", delayMs: 12 });
    expect(await heardDuring(say(texts.ready([])), "ready")).toMatchObject({ queueIds: [] });
  });

  it("come with a flush, and with the commit of the caller's transaction", async () => {
    const queueId = await stage().queue();
    const notice = stage().store.notices.ready([queueId]);
    const flush = () => stage().ready.flush([stage().job(queueId)], { notice });
    expect(await heardDuring(flush, "ready")).toMatchObject({ queueIds: [queueId] });
    const named = () => stage().named.flush([stage().job(queueId)], { notice });
    expect(await heardDuring(named, "ready")).toMatchObject({ queueIds: [queueId] });
    const transaction = async () => {
      const tx = await stage().session();
      await tx.query("begin");
      await stage().store.enqueueIn(tx, [stage().job(queueId)], notice);
      await tx.query("commit");
      await tx.close();
    };
    expect(await heardDuring(transaction, "ready")).toMatchObject({ queueIds: [queueId] });
  });

  it("tell the holder's lease of a cancel", async () => {
    const leaseId = await stage().openLease();
    const job = await stage().running(await stage().queue(), {}, { leaseId });
    const cancel = () => stage().store.cancel(job.id, null);
    expect(await heardDuring(cancel, "cancel")).toEqual({ kind: "cancel", leaseId });
  });

  it("tell of changed queues and of a resumed one's jobs", async () => {
    const [queue] = await stage().store.ensureQueues("", ["noticed"]);
    const pause = (paused: boolean) => () => stage().store.pauseQueue("", "noticed", paused);
    await heardDuring(pause(true), "queues");
    expect(await heardDuring(pause(false), "ready")).toMatchObject({ queueIds: [queue?.id] });
    const configure = () => stage().store.configureQueue("", "noticed", { capacity: 1 });
    await heardDuring(configure, "queues");
  });

  it("stop with the listener", async () => {
    const heard: Notice[] = [];
    const listener = await stage().store.listen((notice) => heard.push(notice));
    await listener.close();
    await heardDuring(() => stage().ready.notify("queues"), "queues");
    expect(heard).toEqual([]);
  });

  it("go on after the listener's connection was cut", async () => {
    const heard: Notice[] = [];
    const listener = await stage().store.listen((notice) => heard.push(notice));
    await stage().sql(
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'millrace listener' and datname = current_database()",
    );
    await until("the reconnection is told as late", () =>
      heard.some((notice) => notice.kind === "ready" && notice.late),
    );
    await stage().ready.notify("queues");
    await until("a notice after it", () => heard.some((notice) => notice.kind === "queues"));
    await listener.close();
  });
};

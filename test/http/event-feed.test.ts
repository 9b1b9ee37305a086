// The feed by itself, on a clock of its own: one poll for all, a sign of life, and readers that are slow.

import { expect, test } from "vitest";
import { EventFeed } from "../../src/http/event-feed.ts";
import { EventStream } from "../../src/http/event-stream.ts";
import type { Identity } from "../../src/http/identity.ts";
import type { StoredEvent } from "../../src/store/event.ts";
import { until } from "../support/until.ts";

const identity: Identity = {
  ...{ keyId: "k", name: "k", role: "admin", tenant: null },
  ...{ rateLimit: null, actor: "key:k" },
};

const event = (no: number): StoredEvent => ({
  ...{ no, at: new Date(0), kind: "queue.created", tenant: null, data: "x".repeat(1_000) },
});

function setUp() {
  let now = 0;
  const calls = { arrange: 0, after: 0, count: 0 };
  const log: StoredEvent[] = [];
  const clock = {
    now: () => new Date(now),
    monotonic: () => now,
    sleep: async (ms: number) => {
      await new Promise((resolve) => setImmediate(resolve));
      now += ms;
    },
  };
  const feed = new EventFeed({
    events: {
      arrange: async () => void calls.arrange++,
      after: async (no, limit) => {
        calls.after++;
        return log.filter((one) => one.no > no).slice(0, limit);
      },
      ends: async () => ({ first: log[0]?.no ?? 0, last: log.at(-1)?.no ?? 0 }),
    },
    countQueues: async () => {
      calls.count++;
      return [];
    },
    clock,
    limits: { eventStreams: 1_000, eventStreamsPerKey: 1_000 },
  });
  const open = async (lastEventId?: number, isAllowed = async () => true) => {
    const stream = new EventStream({ identity, kinds: undefined, isAllowed });
    const seen = { text: "" };
    stream.body.setEncoding("utf8");
    await feed.open(stream, lastEventId);
    return { stream, seen };
  };
  return { feed, open, calls, log, seconds: () => now / 1_000 };
}

test("a thousand streams cost one poll a second, and none costs nothing", async () => {
  const { feed, open, calls, seconds } = setUp();
  expect(calls).toEqual({ arrange: 0, after: 0, count: 0 });
  for (let i = 0; i < 1_000; i++) (await open()).stream.body.resume();
  const [from, before] = [seconds(), { ...calls }];
  await until("ten seconds have passed", () => seconds() >= from + 10);
  const passed = seconds() - from + 2;
  for (const name of ["arrange", "after", "count"] as const)
    expect(calls[name] - before[name], name).toBeLessThanOrEqual(passed);
  await feed.close();
});

test("a quiet stream gets a comment every ten seconds, and ends when it is not allowed any more", async () => {
  const { open, feed } = setUp();
  let allowed = true;
  const { stream } = await open(undefined, async () => allowed);
  let text = "";
  let hasEnded = false;
  stream.body.on("data", (chunk) => {
    text += chunk;
  });
  stream.body.on("end", () => {
    hasEnded = true;
  });
  await until("two comments came", () => text.split(": still here\n\n").length > 2);
  allowed = false;
  await until("it has ended", () => hasEnded);
  await feed.close();
});

test("what a stream read while it caught up is not told again", async () => {
  const { open, feed, log, seconds } = setUp();
  for (let no = 1; no <= 5; no++) log.push(event(no));
  (await open()).stream.body.resume();
  for (let no = 6; no <= 10; no++) log.push(event(no));
  const { stream } = await open(0);
  const ids: number[] = [];
  stream.body.on("data", (chunk: string) => {
    for (const [, id] of chunk.matchAll(/id: (\d+)\nevent: queue/g)) ids.push(Number(id));
  });
  const from = seconds();
  await until("the feed has read on", () => seconds() > from + 3);
  expect(ids).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  await feed.close();
});

test("a reader that does not read is let go; one that catches up is waited for", async () => {
  const { open, feed, log } = setUp();
  for (let no = 1; no <= 5_000; no++) log.push(event(no));
  const patient = await open(0);
  const live = await open();
  let heard = 0;
  await until("the backlog waits", () => patient.stream.body.readableLength > 0);
  patient.stream.body.on("data", (chunk: string) => {
    heard += chunk.split("event: queue.created").length - 1;
  });
  await until("all were heard", () => heard === 5_000);
  for (let no = 5_001; no <= 8_000; no++) log.push(event(no));
  await until("the other one is gone", () => live.stream.body.destroyed);
  await until("the patient one heard on", () => heard === 8_000);
  await feed.close();
});

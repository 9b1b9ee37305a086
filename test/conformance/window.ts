// What every window of hints does, wherever it lives.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { RedisWindow } from "../../src/queue/redis/window.ts";
import {
  drain,
  hint,
  hints,
  type RedisUnderTest,
  takeSeqs,
  toldToRefill,
  WindowStage,
} from "../support/redis-window.ts";
import { until } from "../support/until.ts";
import { windowEpochs } from "./window-epochs.ts";

const most = 10_000;

export function windowConformance(name: string, redis: () => RedisUnderTest): void {
  describe(name, () => {
    let stage: WindowStage;
    beforeEach(() => {
      stage = new WindowStage(redis());
    });
    afterEach(() => stage.close());
    order(() => stage);
    cut(() => stage);
    announcements(() => stage);
    windowEpochs(() => stage);
  });
}

function order(stage: () => WindowStage): void {
  it("gives hints by weight, then by seq, however long a seq is", async () => {
    const window = await stage().opened();
    const inOrder = [
      hint(5, -20),
      hint(7_000, -3),
      hint(9),
      hint(10),
      hint(101),
      hint(1_024_000),
      hint(Number.MAX_SAFE_INTEGER),
      hint(1, 100),
    ];
    expect(await window.put([...inOrder].reverse())).toEqual([]);
    expect((await window.take([1], most)).hints).toEqual(inOrder);
  });

  it("gives each hint to one taker", async () => {
    const [one, other] = [await stage().opened(hints(1, 500)), await stage().open()];
    const taken = await Promise.all(
      Array.from({ length: 60 }, (_, i) => takeSeqs(i % 2 === 0 ? one : other, 10)),
    );
    expect(taken.flat().sort((a, b) => a - b)).toEqual(hints(1, 500).map(({ seq }) => seq));
  });

  it("gives no more than it is asked for, from queue after queue", async () => {
    const window = await stage().opened();
    for (const queueId of [2, 3]) await window.refill(queueId, [], false);
    await window.put([hint(1, 0, 3), hint(2, 0, 2), hint(3, 0, 1), hint(4, 0, 1)]);
    const seqs = async (count: number) =>
      (await window.take([2, 1, 3], count)).hints.map(({ seq }) => seq);
    expect(await seqs(2)).toEqual([2, 3]);
    expect(await seqs(9)).toEqual([4, 1]);
  });

  it("holds a job once that was hinted twice", async () => {
    const window = await stage().opened([hint(1), hint(2)]);
    await window.put([hint(2), hint(1)]);
    await window.refill(1, [hint(1), hint(2), hint(3)], false);
    expect(await drain(window)).toEqual([1, 2, 3]);
  });
}

function cut(stage: () => WindowStage): void {
  const fill = async (window: RedisWindow, count: number) => {
    for (let from = 1; from <= count; from += 1_000)
      await window.put(hints(from, Math.min(count, from + 999)));
  };

  it("keeps ten thousand hints, and of those the first", async () => {
    const window = await stage().opened();
    await fill(window, most + 500);
    await window.put([hint(most + 900, -1)]);
    const [first, ...rest] = await drain(window);
    expect(first).toBe(most + 900);
    expect(rest).toEqual(hints(1, most - 1).map(({ seq }) => seq));
  });

  it("keeps no more than that when it is refilled", async () => {
    const window = await stage().opened();
    await fill(window, 8_000);
    await window.refill(1, hints(8_001, 12_000), false);
    expect(await drain(window)).toHaveLength(most);
  });

  it("lets nothing overtake what found no room", async () => {
    const window = await stage().opened();
    await fill(window, most + 5);
    expect(await takeSeqs(window, 1_000)).toHaveLength(1_000);
    // There is room again, but 10,001 to 10,005 come before these.
    await window.put(hints(20_000, 20_010));
    await window.put([hint(30_000, 7), hint(40_000, -7)]);
    expect(await drain(window)).toEqual([40_000, ...hints(1_001, most).map(({ seq }) => seq)]);
    await window.refill(1, hints(most + 1, most + 5), false);
    await window.put([hint(20_000)]);
    expect(await drain(window)).toEqual([...hints(most + 1, most + 5).map((h) => h.seq), 20_000]);
  });

  it("keeps out what is behind a refill that was not all", async () => {
    const window = await stage().opened();
    await window.put([hint(50)]);
    await window.refill(1, hints(1, 10), true);
    await window.put([hint(90, -1), hint(60)]);
    expect(await drain(window)).toEqual([90, ...hints(1, 10).map(({ seq }) => seq)]);
    await window.refill(1, hints(11, 12), false);
    await window.put([hint(60)]);
    expect(await drain(window)).toEqual([11, 12, 60]);
  });

  it("drops nothing of what it holds for a refill that knew less", async () => {
    const window = await stage().opened();
    await window.refill(1, hints(1, 100), true);
    await window.refill(1, hints(1, 10), true);
    expect(await drain(window)).toEqual(hints(1, 100).map(({ seq }) => seq));
  });

  it("asks for a refill before a window runs empty that does not hold everything", async () => {
    const window = await stage().open();
    await window.refill(1, hints(1, 2_500), true);
    expect((await window.take([1], 100)).refill).toEqual([]);
    await until("it runs low", async () => (await window.take([1], 100)).refill.includes(1));
    expect(await takeSeqs(window, 1)).toHaveLength(1);
  });

  it("asks one caller at a time to refill, and another one if nothing came of it", async () => {
    const windows = [await stage().opened(), await stage().open(), await stage().open()];
    const answers = await Promise.all(windows.map((window) => window.take([1], 1)));
    expect(answers.flatMap(({ refill }) => refill)).toEqual([1]);
    await toldToRefill(windows[2] ?? (await stage().open()));
  });

  it("asks for no refill while a window holds everything there is", async () => {
    const window = await stage().opened(hints(1, 3));
    expect((await window.take([1], 10)).refill).toEqual([]);
  });
}

function announcements(stage: () => WindowStage): void {
  const listening = async () => {
    const window = await stage().open();
    const heard: number[] = [];
    window.onPut((queueId) => heard.push(queueId));
    return heard;
  };

  it("tells every process of hints in an empty window, and of a refill", async () => {
    const [window, here, there] = [await stage().opened(), await listening(), await listening()];
    await window.put([hint(1)]);
    await until("all hear of the put", () => here.length > 0 && there.length > 0);
    await window.refill(2, [hint(1, 0, 2)], false);
    await until("all hear of the refill", () => here.includes(2) && there.includes(2));
    for (const heard of [here, there]) expect(new Set(heard)).toEqual(new Set([1, 2]));
  });

  it("tells of hints again and again while somebody leaves some", async () => {
    const [window, heard] = [await stage().opened([hint(1)]), await listening()];
    await until("it is told of twice", async () => {
      await window.put([hint(2)]);
      return heard.length >= 2;
    });
  });

  it("tells nobody of another database's hints", async () => {
    const elsewhere = new WindowStage(stage().redis);
    try {
      const [heard, window] = [await listening(), await elsewhere.opened()];
      await window.put([hint(1)]);
      await (await stage().opened()).refill(9, [hint(1, 0, 9)], false);
      await until("its own is heard", () => heard.includes(9));
      expect(heard).not.toContain(1);
    } finally {
      await elsewhere.close();
    }
  });
}

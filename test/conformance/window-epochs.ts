// Windows that were filled by, or for, somebody else; and servers that forget, stall or are full.

import { expect, it } from "vitest";
import type { RedisWindow } from "../../src/queue/redis/window.ts";
import { drain, hint, takeSeqs, toldToRefill, type WindowStage } from "../support/redis-window.ts";
import { until } from "../support/until.ts";

const unavailable = expect.objectContaining({ code: "REDIS_UNAVAILABLE" });

export function windowEpochs(stage: () => WindowStage): void {
  const isForeign = async (window: RedisWindow) => {
    expect(await window.put([hint(7)])).toEqual([hint(7)]);
    await toldToRefill(window);
    await window.refill(1, [hint(8)], false);
    expect(await window.put([hint(9)])).toEqual([]);
    expect(await drain(window)).toEqual([8, 9]);
  };

  const worksAgain = (window: RedisWindow) =>
    until("it works again", () =>
      window.put([hint(7)]).then(
        () => true,
        () => false,
      ),
    );

  it("holds nothing before its first refill", async () => {
    await isForeign(await stage().open());
  });

  it("gives nothing of another epoch, and belongs to whoever refills it", async () => {
    const old = await stage().opened([hint(1), hint(2)]);
    const window = await stage().open("after the promotion");
    await isForeign(window);
    expect(await old.put([hint(3)])).toEqual([hint(3)]);
    expect(await takeSeqs(old)).toEqual([]);
  });

  it("is foreign to a process that has learnt of another PostgreSQL", async () => {
    const window = await stage().opened([hint(1)]);
    window.renew("now");
    expect(await takeSeqs(window, 1)).toEqual([1]);
    await window.put([hint(2)]);
    window.renew("after the promotion");
    await isForeign(window);
  });

  it("is foreign after a flush", async () => {
    const window = await stage().opened([hint(1)]);
    await stage().everyServer((server) => server.command("FLUSHALL"));
    await isForeign(window);
  });

  it("is foreign when the server came back with its old append-only file", async () => {
    const window = await stage().opened([hint(1)]);
    await stage().everyServer((server) => server.restart());
    await worksAgain(window);
    await isForeign(window);
  });

  it("refuses soon while the server is silent, and hears announcements when it is back", async () => {
    const [window, other] = [await stage().opened(), await stage().open()];
    const heard: number[] = [];
    other.onPut((queueId) => heard.push(queueId));
    await stage().everyServer(async (server) => server.pause());
    for (const one of [window, other])
      await expect(one.put([hint(1)])).rejects.toEqual(unavailable);
    await expect(window.take([1], 1)).rejects.toEqual(unavailable);
    expect(window.isReady).toBe(false);
    await stage().everyServer(async (server) => server.resume());
    await until("both connections are back", () => window.isReady && other.isReady);
    await until("an announcement is heard", async () => {
      await window.put([hint(2)]).catch(() => {});
      return heard.includes(1);
    });
  });

  it("gives what it holds while the server is full, and refuses the rest", async () => {
    const window = await stage().opened([hint(1)]);
    await stage().everyServer((server) => server.command("CONFIG", "SET", "maxmemory", "1"));
    try {
      await expect(window.put([hint(2)])).rejects.toEqual(unavailable);
      expect(await takeSeqs(window)).toEqual([1]);
      expect(await takeSeqs(window)).toEqual([]);
    } finally {
      await stage().everyServer((server) => server.command("CONFIG", "SET", "maxmemory", "0"));
    }
    await toldToRefill(window);
    expect(await window.put([hint(2)])).toEqual([]);
  });

  it("refuses when it is closed", async () => {
    const window = await stage().opened();
    await window.close();
    await expect(window.put([hint(1)])).rejects.toEqual(unavailable);
  });
}

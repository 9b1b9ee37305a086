import { mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { withLock } from "../../src/store/postgres/embedded-lock.ts";
import { describeHost, inspectProcess } from "../../src/store/postgres/embedded-process.ts";

let folder: string;
let lock: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "millrace-lock-"));
  lock = join(folder, "start.lock");
});
afterEach(async () => {
  await rm(folder, { recursive: true, force: true });
});

async function leaveLock(owner: { pid: number; started: string; host: string }) {
  await writeFile(lock, JSON.stringify({ id: "left-behind", ...owner }));
}

async function crowd(size: number): Promise<number> {
  let inside = 0;
  let most = 0;
  const enter = () =>
    withLock(lock, async () => {
      inside += 1;
      most = Math.max(most, inside);
      for (let step = 0; step < 10; step++) await readdir(folder);
      inside -= 1;
    });
  await Promise.all(Array.from({ length: size }, enter));
  return most;
}

test("one holder at a time, and nothing is left behind", async () => {
  expect(await crowd(20)).toBe(1);
  expect(await readdir(folder)).toEqual([]);
});

test("the lock of a dead process is broken by one of many who want it", async () => {
  const host = await describeHost();
  for (let round = 0; round < 40; round++) {
    await leaveLock({ pid: 2 ** 30, started: "1", host });
    expect(await crowd(5)).toBe(1);
  }
  expect(await readdir(folder)).toEqual([]);
});

test("a process that got the dead holder's id is not taken for it", async () => {
  await leaveLock({ pid: process.pid, started: "another time", host: await describeHost() });
  expect(await crowd(2)).toBe(1);
});

test.each(["", '{"pid":12', "null", "{}", "[]", '"text"'])(
  "a lock that holds %j is broken when it has been silent for long, and not before",
  async (content) => {
    await writeFile(lock, content);
    let entered = false;
    const waiting = withLock(lock, async () => {
      entered = true;
    });
    await inspectProcess(process.pid);
    await inspectProcess(process.pid);
    expect(entered).toBe(false);
    await utimes(lock, new Date(0), new Date(0));
    await waiting;
    expect(await readdir(folder)).toEqual([]);
  },
);

test("the lock of a living process, and a fresh one of another container, are respected", async () => {
  const started = (await inspectProcess(process.pid))?.started ?? "";
  for (const host of [await describeHost(), "another container"]) {
    await leaveLock({ pid: process.pid, started, host });
    let entered = false;
    const waiting = withLock(lock, async () => {
      entered = true;
    });
    await inspectProcess(process.pid);
    await inspectProcess(process.pid);
    expect(entered).toBe(false);
    await rm(lock);
    await waiting;
  }
  await leaveLock({ pid: 1, started, host: "another container" });
  await utimes(lock, new Date(0), new Date(0));
  expect(await crowd(1)).toBe(1);
});

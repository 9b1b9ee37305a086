// A lock file that survives the death of its holder. It names the holder, so that a dead one's lock
// can be broken; who breaks it first takes a second file named after that very lock, so that of two
// breakers none can remove the lock which the other has just taken.

import { randomUUID } from "node:crypto";
import { link, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { describeHost, inspectProcess } from "./embedded-process.ts";

interface LockOwner {
  readonly id: string;
  readonly pid: number;
  readonly started: string;
  readonly host: string;
}

const pollMs = 20;
const renewMs = 1_000;
/** For holders that cannot be inspected: those of another container, and breakers. */
const silentMs = 15_000;

export async function withLock<T>(path: string, action: () => Promise<T>): Promise<T> {
  const owner: LockOwner = {
    id: randomUUID(),
    pid: process.pid,
    started: (await inspectProcess(process.pid))?.started ?? "",
    host: await describeHost(),
  };
  while (!(await create(path, JSON.stringify(owner)))) {
    if (!(await breakIfDead(path, owner.host))) await delay(pollMs);
  }
  const renewal = setInterval(() => void touch(path), renewMs);
  try {
    return await action();
  } finally {
    clearInterval(renewal);
    await rm(path, { force: true });
  }
}

/** The file appears with its content, so that nobody reads half a lock. */
async function create(path: string, content: string): Promise<boolean> {
  const draft = `${path}.${randomUUID()}.draft`;
  await writeFile(draft, content, { mode: 0o644 });
  try {
    await link(draft, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
}

async function breakIfDead(path: string, host: string): Promise<boolean> {
  const content = await readFile(path, "utf8").catch(() => undefined);
  if (content === undefined) return true;
  const owner = ownerIn(content);
  if (await isHeld(path, owner, host)) return false;
  const breaker = `${path}.${owner.id}`;
  if (!(await create(breaker, ""))) {
    if (await isSilent(breaker)) await rm(breaker, { force: true });
    return false;
  }
  try {
    // Nobody else can remove this lock now; but somebody may have done so before.
    const current = await readFile(path, "utf8").catch(() => undefined);
    if (current === content) await rm(path, { force: true });
    return true;
  } finally {
    await rm(breaker, { force: true });
  }
}

/** A power cut may leave a file without its content: then its age alone says whether somebody holds it. */
function ownerIn(content: string): LockOwner {
  const nobody = { id: "unreadable", pid: 0, started: "", host: "" };
  try {
    return { ...nobody, ...JSON.parse(content) };
  } catch {
    return nobody;
  }
}

async function isHeld(path: string, owner: LockOwner, host: string) {
  if (owner.host !== host) return !(await isSilent(path));
  return (await inspectProcess(owner.pid))?.started === owner.started;
}

async function isSilent(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found !== undefined && Date.now() - found.mtimeMs > silentMs;
}

async function touch(path: string) {
  const now = new Date();
  await utimes(path, now, now).catch(() => undefined);
}

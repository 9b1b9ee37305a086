// Who else is at work on this data folder: a keeper that is still stopping, a server whose keeper
// was killed, or a process of another container whose ids mean nothing here.

import { rm, stat } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { MillraceError } from "../../domain/errors.ts";
import { type Layout, readIfThere } from "./embedded-layout.ts";
import { join, type Membership, readState } from "./embedded-membership.ts";
import { describeHost, inspectProcess } from "./embedded-process.ts";

const pollMs = 20;
const patienceMs = 60_000;
/** A keeper renews its state file every two seconds. */
const silentMs = 6_000;
const longSilentMs = 60_000;

/** Returns when no keeper is left, or with a membership if there is one to join after all. */
export async function awaitQuiet(layout: Layout): Promise<Membership | undefined> {
  const host = await describeHost();
  const deadline = Date.now() + patienceMs;
  for (;;) {
    const membership = await join(layout);
    if (membership !== undefined) return membership;
    const state = await readState(layout);
    if (state === undefined) return undefined;
    if (state.host !== host) return refuseIfRenewed(layout, state.host);
    const keeper = await inspectProcess(state.pid);
    if (!keeper?.command.includes(layout.name)) return undefined;
    if (Date.now() > deadline) {
      throw new MillraceError(
        "EMBEDDED_UNAVAILABLE",
        `The embedded PostgreSQL's keeper (process ${state.pid}) does not answer.`,
      );
    }
    await delay(pollMs);
  }
}

/** A running server without a keeper. A pid file that only looks like one is removed. */
export async function findPostmaster(
  layout: Layout,
): Promise<{ pid: number; port: number } | undefined> {
  const deadline = Date.now() + patienceMs;
  for (;;) {
    const lines = (await readIfThere(layout.pidFile))?.split("\n") ?? [];
    const pid = Number(lines[0]);
    if (!(pid > 0)) return undefined;
    const found = await inspectProcess(pid);
    if (!found?.command.includes(layout.name)) {
      // PostgreSQL would take a zombie, or another process with this id, for a running server.
      // Backends that outlived theirs it finds by the shared memory, even without this file.
      await rm(layout.pidFile, { force: true });
      return undefined;
    }
    if (lines[7]?.trim() === "ready") return { pid, port: Number(lines[3]) };
    if (Date.now() > deadline) {
      throw new MillraceError(
        "EMBEDDED_UNAVAILABLE",
        `PostgreSQL (process ${pid}) has been starting or stopping for a minute.`,
      );
    }
    await delay(pollMs);
  }
}

async function refuseIfRenewed(layout: Layout, host: string): Promise<undefined> {
  const renewed = async () => (await stat(layout.state).catch(() => undefined))?.mtimeMs;
  const before = await renewed();
  if (before === undefined || Date.now() - before > longSilentMs) return undefined;
  const deadline = Date.now() + silentMs;
  while (Date.now() < deadline) {
    await delay(pollMs);
    const now = await renewed();
    if (now === undefined) return undefined;
    if (now !== before) {
      throw new MillraceError(
        "EMBEDDED_UNAVAILABLE",
        `${layout.dataDir} is in use on another machine or in another container (${host}). Two ` +
          "servers on one folder would destroy it. Use a folder for each, or set DATABASE_URL.",
      );
    }
  }
  return undefined;
}

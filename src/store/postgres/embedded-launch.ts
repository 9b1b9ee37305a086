// Joins the server of a data folder, or starts it. Only one process starts it at a time; whoever
// comes second finds it running and joins.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chown, open, readFile, rename, rm, stat } from "node:fs/promises";
import { join as joinPath } from "node:path";
import { fileURLToPath } from "node:url";
import { MillraceError } from "../../domain/errors.ts";
import { findBinaries, prepareBinaries, serverEnvironment } from "./embedded-binaries.ts";
import {
  createCluster,
  hasCluster,
  serverArguments,
  takeFromRoot,
  viewOf,
} from "./embedded-cluster.ts";
import type { Layout } from "./embedded-layout.ts";
import { withLock } from "./embedded-lock.ts";
import { join, type Membership } from "./embedded-membership.ts";
import { awaitQuiet, findPostmaster } from "./embedded-neighbours.ts";
import { describeHost, describeProcess } from "./embedded-process.ts";
import { chooseServerUser, type ServerUser } from "./embedded-user.ts";

export interface LaunchOptions {
  readonly binariesPackage: string;
  readonly settings: Readonly<Record<string, string>>;
  readonly log: (message: string, fields?: object) => void;
  /** The port to take again after the keeper was lost, because URLs with it are in use. */
  readonly port?: number;
}

export interface Attachment {
  readonly membership: Membership;
  readonly joined: boolean;
}

const largestLog = 5_000_000;

export async function attach(layout: Layout, options: LaunchOptions): Promise<Attachment> {
  const membership = await join(layout);
  if (membership !== undefined) return { membership, joined: true };
  return withLock(layout.lock, async () => {
    const found = await awaitQuiet(layout);
    if (found !== undefined) return { membership: found, joined: true };
    return { membership: await launch(layout, options), joined: false };
  });
}

async function launch(layout: Layout, options: LaunchOptions): Promise<Membership> {
  const binaries = await findBinaries(options.binariesPackage);
  const exists = await hasCluster(layout, binaries);
  const user = await chooseServerUser(layout.cluster);
  const binDir = await prepareBinaries(binaries, user);
  if (exists) await takeFromRoot(layout, user);
  else {
    options.log("creating an embedded PostgreSQL", { dataDir: layout.dataDir });
    await createCluster(layout, binDir, user);
  }
  const view = await viewOf(layout, user);
  const adopt = await findPostmaster(layout);
  const started = await startKeeper(layout, user, {
    adopt,
    port: options.port,
    program: joinPath(binDir, "postgres"),
    arguments: serverArguments(layout, view, options.settings),
    environment: serverEnvironment,
    user,
    byDescriptor: view.byDescriptor,
    dataDir: layout.dataDir,
    pidFile: layout.pidFile,
    log: layout.log,
    state: layout.state,
    host: await describeHost(),
    password: await readPassword(layout),
  });
  const membership = await join(layout);
  if (membership !== undefined) return membership;
  throw new MillraceError(
    "EMBEDDED_UNAVAILABLE",
    `The embedded PostgreSQL's keeper (process ${started.pid}) ended at once; see ${layout.log}.`,
  );
}

async function startKeeper(
  layout: Layout,
  user: ServerUser | undefined,
  orders: object,
): Promise<ChildProcess> {
  const log = await openLog(layout, user);
  const script = fileURLToPath(new URL("./embedded-keeper.mjs", import.meta.url));
  const child = spawn(process.execPath, [script, layout.name], {
    detached: true,
    cwd: "/",
    env: {},
    stdio: ["pipe", "pipe", log.fd],
  });
  try {
    child.stdin?.on("error", () => undefined);
    child.stdin?.end(JSON.stringify(orders));
    await Promise.race([once(child.stdout ?? child, "data"), once(child, "exit")]);
  } finally {
    await log.close();
    child.stdout?.destroy();
    child.unref();
  }
  return child;
}

async function openLog(layout: Layout, user: ServerUser | undefined) {
  const size = (await stat(layout.log).catch(() => undefined))?.size ?? 0;
  if (size > largestLog) await rename(layout.log, layout.previousLog);
  const log = await open(layout.log, "a", 0o600);
  // So that the account can go on by itself when root has started its server once.
  if (user !== undefined) await chown(layout.log, user.uid, user.gid);
  return log;
}

async function readPassword(layout: Layout): Promise<string> {
  try {
    return await readFile(layout.password, "utf8");
  } catch (cause) {
    throw new MillraceError(
      "EMBEDDED_UNAVAILABLE",
      `The cluster in ${layout.dataDir} cannot be used without its password file ` +
        `${layout.password}, which cannot be read. Put it back, or delete the folder to start fresh.`,
      { cause },
    );
  }
}

/** Removes what `startEmbedded` created, and nothing else that may lie in the folder. */
export async function remove(layout: Layout): Promise<void> {
  await withLock(layout.lock, async () => {
    const membership = await awaitQuiet(layout);
    await membership?.leave();
    if (membership !== undefined || (await findPostmaster(layout)) !== undefined) {
      const users = await Promise.all([...new Set(membership?.others)].map(describeProcess));
      const who = users.length === 0 ? "" : `: ${users.join(", ")}`;
      throw new MillraceError(
        "EMBEDDED_UNAVAILABLE",
        `The embedded PostgreSQL in ${layout.dataDir} is in use; stop the other processes first${who}.`,
      );
    }
    const files = [layout.cluster, layout.password, layout.state, layout.log, layout.previousLog];
    for (const path of files) await rm(path, { recursive: true, force: true });
  });
}

// Which `millrace dev` runs on a data folder, so that a second one can say where the first is.

import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { inspectProcess } from "../store/postgres/embedded-process.ts";

export interface Presence {
  readonly pid: number;
  readonly url: string;
}

const fileOf = (dataDir: string) => join(dataDir, "dev.json");

/** The one that was there first, if it still is. */
export async function readPresence(dataDir: string): Promise<Presence | null> {
  try {
    const { pid, url } = JSON.parse(await readFile(fileOf(dataDir), "utf8"));
    const isOurs = typeof pid === "number" && typeof url === "string" && pid !== process.pid;
    return isOurs && (await inspectProcess(pid)) !== undefined ? { pid, url } : null;
  } catch {
    return null;
  }
}

export async function leavePresence(dataDir: string, url: string): Promise<() => Promise<void>> {
  await writeFile(fileOf(dataDir), JSON.stringify({ pid: process.pid, url }), { mode: 0o600 });
  return () => rm(fileOf(dataDir), { force: true });
}

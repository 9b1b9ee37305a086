// What can be known about another process of this machine. A process id alone says little: ids are
// used again, and in containers without an init a dead process stays listed as a zombie.

import { execFile } from "node:child_process";
import { readFile, readlink } from "node:fs/promises";
import { hostname } from "node:os";
import { basename } from "node:path";
import { promisify } from "node:util";

export interface RunningProcess {
  /** Differs between two processes that had the same id. */
  readonly started: string;
  readonly command: string;
}

/** Undefined when there is no such process, or only its zombie. */
export async function inspectProcess(pid: number): Promise<RunningProcess | undefined> {
  try {
    return process.platform === "linux" ? await readProc(pid) : await askPs(pid);
  } catch {
    return undefined;
  }
}

/** For people: the id and what it runs, without arguments that may hold secrets. */
export async function describeProcess(pid: number): Promise<string> {
  const words = (await inspectProcess(pid))?.command.trim().split(/\s+/) ?? [];
  const shown = words.filter((word) => !word.startsWith("-")).slice(0, 3);
  const named = shown.map((word) => basename(word)).join(" ");
  return named === "" ? `process ${pid}` : `process ${pid} (${named})`;
}

/** Process ids of two machines, or of two containers, cannot be compared. */
export async function describeHost(): Promise<string> {
  if (process.platform !== "linux") return hostname();
  const boot = await readFile("/proc/sys/kernel/random/boot_id", "utf8").catch(() => "");
  const namespace = await readlink("/proc/self/ns/pid").catch(() => "");
  return [hostname(), boot.trim(), namespace].join(" ");
}

async function readProc(pid: number): Promise<RunningProcess | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8");
  const command = await readFile(`/proc/${pid}/cmdline`, "utf8");
  // The second field is the program's name, which may contain anything but ends with the last ")".
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  if (fields[0] === "Z" || fields[0] === "X") return undefined;
  return { started: fields[19] ?? "", command: command.replaceAll("\0", " ") };
}

async function askPs(pid: number): Promise<RunningProcess | undefined> {
  const args = ["-ww", "-p", String(pid), "-o", "stat=,lstart=,command="];
  const { stdout } = await promisify(execFile)("ps", args, { env: { LC_ALL: "C" } });
  const match = stdout.trim().match(/^(\S+)\s+(\S+ \S+ +\S+ \S+ \S+)\s+(.*)$/);
  if (match === null || match[1]?.startsWith("Z")) return undefined;
  return { started: match[2] ?? "", command: match[3] ?? "" };
}

// CPU seconds used by a process and everything below it, exited children included. Linux only: elsewhere null.
import { readdirSync, readFileSync } from "node:fs";

const ticksPerSecond = 100;

function statOf(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return {
      parent: Number(fields[1]),
      own: Number(fields[11]) + Number(fields[12]),
      exited: Number(fields[13]) + Number(fields[14]),
    };
  } catch {
    return null;
  }
}

export function cpuSecondsOf(root) {
  if (process.platform !== "linux") return null;
  const children = new Map();
  const stats = new Map();
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    const stat = statOf(entry);
    if (!stat) continue;
    stats.set(Number(entry), stat);
    children.set(stat.parent, [...(children.get(stat.parent) ?? []), Number(entry)]);
  }
  let ticks = 0;
  const pending = [root];
  while (pending.length > 0) {
    const pid = pending.pop();
    const stat = stats.get(pid);
    if (stat) ticks += stat.own + stat.exited;
    pending.push(...(children.get(pid) ?? []));
  }
  return ticks / ticksPerSecond;
}

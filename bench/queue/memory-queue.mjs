// MemoryQueue alone, as bench/queue-memory.mjs measures it, in a process of its own.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const script = fileURLToPath(new URL("../queue-memory.mjs", import.meta.url));
const line = /^(one by one|in batches)\s+push\s+([\d.]+) M\/s\s+pop\s+([\d.]+) M\/s/gm;

export function measureMemoryQueue(count) {
  const run = spawnSync(process.execPath, [script, String(count)], { encoding: "utf8" });
  if (run.status !== 0) throw new Error(`queue-memory.mjs failed:\n${run.stderr}`);
  return [...run.stdout.matchAll(line)].map(([, how, push, pop]) => ({
    how,
    push: Number(push) * 1e6,
    pop: Number(pop) * 1e6,
  }));
}

// The standalone queue beside BullMQ, in one run. Everything started here stops here.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const parts = ["memory", "end_to_end", "pickup", "memory_queue"];

const help = `RedisQueue beside BullMQ on Redis, and MemoryQueue, in one table.

  npm run bench -- queue [options]

  --only <a,b>   these parts only: ${parts.join(", ")}
  --rounds <n>   rounds of end_to_end and pickup (default 3)
  --items <n>    items for memory and memory_queue (default 1000000)
  --scale <x>    multiplies the numbers of items end to end (default 1)
  --out <name>   writes results/<name>.json and .md (default queue)
  --no-build     uses dist/ as it is
  --help`;

/** The modules, as bench/systems/index.mjs finds them. */
const systems = { RedisQueue: "../queue/redis-queue", BullMQ: "bullmq-redis" };

function readOptions() {
  const { values } = parseArgs({
    options: {
      only: { type: "string", default: parts.join(",") },
      rounds: { type: "string", default: "3" },
      items: { type: "string", default: "1000000" },
      scale: { type: "string", default: "1" },
      out: { type: "string", default: "queue" },
      "no-build": { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  const only = values.only.split(",");
  const unknown = only.find((part) => !parts.includes(part));
  if (unknown !== undefined) throw new Error(`unknown part ${unknown}; known: ${parts.join(", ")}`);
  const [rounds, items, scale] = ["rounds", "items", "scale"].map((name) => {
    if (Number(values[name]) > 0) return Number(values[name]);
    throw new Error(`--${name} must be a positive number`);
  });
  return { ...values, only, rounds: Math.ceil(rounds), items: Math.ceil(items), scale };
}

async function measure(options, lab, stopping) {
  const { endToEnd, pickup } = await import("../measure.mjs");
  const { interleave } = await import("../rounds.mjs");
  const { adapterOf } = await import("../systems/index.mjs");
  const { Progress } = await import("../progress.mjs");
  const { memoryOf } = await import("./memory.mjs");
  const { measureMemoryQueue } = await import("./memory-queue.mjs");
  const { compare, rate } = await import("./table.mjs");
  const progress = new Progress(process.stdout);
  const context = { progress, stopping };

  /** Without persistence: the queues are compared, not the disk. */
  const configOf = async (system, mode) =>
    (await adapterOf(system)).modes[mode].find(({ server }) => server === "redis");
  const both = async (scenario, mode, once) => {
    const entries = [];
    for (const [system, module] of Object.entries(systems)) {
      const config = await configOf(module, mode);
      const measureOnce = () => once(module, config);
      entries.push({ scenario, system, config: config.label, measure: measureOnce });
    }
    const [mine, bullmq] = await interleave(context, entries, options.rounds);
    const failure = mine.failure ?? bullmq.failure;
    if (failure) throw new Error(failure);
    return (key) => compare(key, mine[key], bullmq[key]);
  };

  const rows = [];
  if (options.only.includes("memory")) {
    const bytes = [];
    for (const [system, module] of Object.entries(systems)) {
      progress.note(`memory of ${options.items} items · ${system}`);
      const config = await configOf(module, "bulk");
      bytes.push((await memoryOf(lab, module, config, options.items)).bytes_per_item);
    }
    rows.push(compare("bytes_per_item", ...bytes));
  }
  if (options.only.includes("end_to_end")) {
    const result = await both("end_to_end", "single", (system, config) =>
      endToEnd(lab, system, config, Math.ceil(config.counts.end_to_end * options.scale)),
    );
    rows.push(result("jobs_per_second"));
  }
  if (options.only.includes("pickup")) {
    const samples = Math.ceil(900 / options.rounds);
    const result = await both("pickup", "idle", (system, config) =>
      pickup(lab, system, config, samples, { local: false }),
    );
    rows.push(result("pickup_p50_ms"), result("pickup_p99_ms"));
  }
  if (options.only.includes("memory_queue")) {
    progress.note(`MemoryQueue, ${options.items} items`);
    for (const { how, push, pop } of measureMemoryQueue(options.items)) {
      rows.push(rate(`MemoryQueue push, ${how}`, push), rate(`MemoryQueue pop, ${how}`, pop));
    }
  }
  return rows;
}

async function write(rows, options, redis) {
  const { tableOf } = await import("./table.mjs");
  const read = (path) => JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8"));
  const { version: bullmq } = read("../node_modules/bullmq/package.json");
  const { rounds, items, scale, out } = options;
  const about = {
    ...{ date: new Date().toISOString(), node: process.versions.node, processors: cpus().length },
    ...{ redis, bullmq, rounds, items, scale },
  };
  const folder = fileURLToPath(new URL("../results/", import.meta.url));
  mkdirSync(folder, { recursive: true });
  writeFileSync(`${folder}${out}.json`, `${JSON.stringify({ about, rows }, null, 2)}\n`);
  writeFileSync(`${folder}${out}.md`, tableOf(rows, about));
  console.log(`\n${tableOf(rows, about)}\nWritten: bench/results/${out}.json and .md`);
}

async function main() {
  const options = readOptions();
  if (options.help) return console.log(help);
  const { Lab } = await import("../lab.mjs");
  const lab = new Lab();
  let stopping = false;
  const stop = async (code) => {
    if (stopping) return;
    stopping = true;
    await lab.stop();
    process.exit(code);
  };
  process.on("SIGINT", () => stop(130));
  process.on("SIGTERM", () => stop(143));
  process.on("disconnect", () => stop(1));
  try {
    const rows = await measure(options, lab, () => stopping);
    await write(rows, options, (await lab.versions()).redis ?? "unused");
    await stop(rows.every(({ met }) => met) ? 0 : 1);
  } catch (error) {
    if (stopping) return;
    console.error(error);
    await stop(1);
  }
}

await main().catch((error) => {
  console.error(`bench: ${error.message}`);
  process.exit(2);
});

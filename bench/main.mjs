// The run: chosen scenarios one after the other, then the report. Everything started here stops here.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { fileURLToPath } from "node:url";
import { help, parseOptions } from "./options.mjs";
import { Progress } from "./progress.mjs";

const results = fileURLToPath(new URL("./results/", import.meta.url));

function readOptions() {
  try {
    return parseOptions(process.argv.slice(2));
  } catch (error) {
    console.error(`bench: ${error.message}`);
    process.exit(2);
  }
}

function chosen(scenarios, { only, quick }) {
  if (only) return scenarios.filter(({ names }) => names.some((name) => only.includes(name)));
  return quick ? scenarios.filter((scenario) => scenario.quick) : scenarios;
}

function versionOf(name) {
  const manifest = new URL(`./node_modules/${name}/package.json`, import.meta.url);
  return JSON.parse(readFileSync(manifest, "utf8")).version;
}

async function describe(lab, options) {
  const peers = ["bullmq", "graphile-worker", "pg-boss", "pg", "redis"];
  return {
    date: new Date().toISOString(),
    node: process.versions.node,
    processors: cpus().length,
    servers: await lab.versions(),
    packages: Object.fromEntries(peers.map((name) => [name, versionOf(name)])),
    rounds: options.rounds,
    scale: options.scale,
  };
}

async function write(rows, about, out) {
  const { markdownOf } = await import("./report/markdown.mjs");
  const { chartOf } = await import("./report/chart.mjs");
  mkdirSync(results, { recursive: true });
  writeFileSync(`${results}${out}.json`, `${JSON.stringify(rows, null, 2)}\n`);
  writeFileSync(`${results}${out}.md`, markdownOf(rows, about));
  writeFileSync(`${results}${out}.svg`, chartOf(rows, about));
}

async function run(options, lab, stopping) {
  const { scenarios } = await import("./scenarios/index.mjs");
  const progress = new Progress(process.stdout);
  const context = {
    lab,
    progress,
    stopping,
    systems: options.systems,
    rounds: options.rounds,
    tiny: options.tiny,
    leadingOnly: options.quick,
    scaled: (count) => Math.max(200, Math.round(count * options.scale)),
  };
  const startedAt = Date.now();
  const rows = [];
  for (const scenario of chosen(scenarios, options)) {
    rows.push(...(await scenario.run(context)));
    await write(rows, await describe(lab, options), options.out); // what is measured survives an interrupted run
  }
  const minutes = ((Date.now() - startedAt) / 60_000).toFixed(1);
  progress.note(`\n${readFileSync(`${results}${options.out}.md`, "utf8")}`);
  progress.note(`${minutes} minutes. Written: bench/results/${options.out}.json, .md and .svg`);
  return rows;
}

async function main() {
  const options = readOptions();
  if (options.help) return console.log(help);
  const { Lab } = await import("./lab.mjs");
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
    const rows = await run(options, lab, () => stopping);
    await stop(rows.some((row) => row.failure) ? 1 : 0);
  } catch (error) {
    if (stopping) return;
    console.error(error);
    await stop(1);
  }
}

await main();

// The HTTP service beside the same without HTTP, in one run. Everything started here stops here.
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { Lab } from "../lab.mjs";
import { payloadOf } from "../payload.mjs";
import { longPolls, waitingRobots } from "./robots.mjs";
import { tableOf } from "./table.mjs";

const parts = ["bulk", "single", "long_poll", "waiting"];
const help = `The HTTP service: bulk beside in-process, single enqueues beside a bare route, long polling.

  npm run bench -- http [options]

  --only <a,b>      these parts only: ${parts.join(", ")}
  --rounds <n>      rounds of bulk and single, interleaved (default 3)
  --seconds <n>     how long each measurement takes (default 5)
  --out <name>      writes results/<name>.json and .md (default http)
  --no-build        uses dist/ as it is
  --help`;

const adminKey = "a-key-of-the-bench-0123456789";
const bulkSize = 100;
const bulkInFlight = 8;
const singleConnections = 100;
const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const bulkBody = JSON.stringify({
  jobs: Array.from({ length: bulkSize }, (_, n) => ({
    ...{ type: "order.ship", queue: "bench", payload: payloadOf(n) },
  })),
});
const singleBody = JSON.stringify({ type: "order.ship", queue: "bench", payload: payloadOf(1) });

function readOptions() {
  const { values } = parseArgs({
    options: {
      only: { type: "string", default: parts.join(",") },
      rounds: { type: "string", default: "3" },
      seconds: { type: "string", default: "5" },
      out: { type: "string", default: "http" },
      "no-build": { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  const only = values.only.split(",");
  const unknown = only.find((part) => !parts.includes(part));
  if (unknown !== undefined) throw new Error(`unknown part ${unknown}; known: ${parts.join(", ")}`);
  return { ...values, only, rounds: Number(values.rounds), seconds: Number(values.seconds) };
}

class ServiceProcess {
  #child;
  #calls = 0;

  async start(databaseUrl) {
    this.#child = fork(here("./service.mjs"), [JSON.stringify({ databaseUrl, adminKey })]);
    const [{ ready }] = await once(this.#child, "message");
    Object.assign(this, ready);
  }

  async enqueue(enqueue) {
    const id = ++this.#calls;
    this.#child.send({ id, enqueue });
    const [{ answer }] = await once(this.#child, "message");
    return answer;
  }

  async close() {
    if (this.#child === undefined || this.#child.exitCode !== null) return;
    this.#child.send({});
    await once(this.#child, "exit");
  }
}

async function load(wish) {
  const child = fork(here("./load.mjs"), [JSON.stringify({ ...wish, key: adminKey })]);
  const [{ perSecond }] = await once(child, "message");
  return perSecond;
}

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

/** Each of these in turn, so many rounds; the order turns as well. */
async function interleaved(rounds, measures) {
  const found = measures.map(() => []);
  for (let round = 0; round < rounds; round++) {
    for (let i = 0; i < measures.length; i++) {
      const at = (i + round) % measures.length;
      found[at].push(await measures[at]());
    }
  }
  return found.map(median);
}

async function measure({ only, rounds, seconds }, service) {
  const rows = [];
  if (only.includes("bulk")) {
    const wish = { url: service.service, path: "/api/jobs", body: bulkBody, seconds };
    const [http, inProcess] = await interleaved(rounds, [
      async () => bulkSize * (await load({ ...wish, connections: bulkInFlight })),
      () => service.enqueue({ size: bulkSize, inFlight: bulkInFlight, seconds }),
    ]);
    rows.push({ part: "bulk", ours: http, beside: inProcess, wanted: 0.7 * inProcess });
  }
  if (only.includes("single")) {
    const wish = { body: singleBody, seconds, connections: singleConnections };
    const [http, bare] = await interleaved(rounds, [
      () => load({ ...wish, url: service.service, path: "/api/jobs" }),
      () => load({ ...wish, url: service.bare, path: "/jobs" }),
    ]);
    rows.push({ part: "single", ours: http, beside: bare, wanted: Math.min(5_000, 0.5 * bare) });
  }
  if (only.includes("long_poll")) {
    const { arrivalMs, addMs } = await longPolls(service.service, adminKey, 300);
    const moreMs = median(arrivalMs) - median(addMs);
    rows.push({ part: "long_poll", ours: moreMs, beside: median(addMs), wanted: 10 });
  }
  if (only.includes("waiting")) {
    const perSecond = await waitingRobots(service.service, adminKey, 1_000, 10);
    rows.push({ part: "waiting", ours: perSecond, beside: null, wanted: 1 });
  }
  return rows.map((row) => ({ ...row, met: isMet(row) }));
}

const isMet = ({ part, ours, wanted }) =>
  part === "long_poll" || part === "waiting" ? ours <= wanted : ours >= wanted;

async function main() {
  const options = readOptions();
  if (options.help) return console.log(help);
  const lab = new Lab();
  const service = new ServiceProcess();
  lab.stands.add(service);
  const stop = async (code) => {
    await lab.stop();
    process.exit(code);
  };
  process.on("SIGINT", () => stop(130));
  process.on("SIGTERM", () => stop(143));
  try {
    const postgres = await lab.server("postgres");
    await service.start((await postgres.createDatabase()).url);
    const rows = await measure(options, service);
    const about = { date: new Date().toISOString(), node: process.versions.node, ...options };
    const text = tableOf(rows, { ...about, processors: cpus().length, postgres: postgres.version });
    const results = here("../results/");
    mkdirSync(results, { recursive: true });
    writeFileSync(`${results}${options.out}.json`, `${JSON.stringify(rows, null, 2)}\n`);
    writeFileSync(`${results}${options.out}.md`, text);
    console.log(text);
    await stop(rows.every(({ met }) => met) ? 0 : 1);
  } catch (error) {
    console.error(error);
    await stop(1);
  }
}

await main();

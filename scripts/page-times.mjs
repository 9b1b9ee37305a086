// How long the dashboard's pages take to be answered with many jobs in the database: fills a database of
// its own by SQL, asks what each page asks, and prints a table. Needs a build.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import pg from "pg";
import { fillJobs } from "./fill-jobs.mjs";
import { pageCalls } from "./page-calls.mjs";

const help = `Usage: node scripts/page-times.mjs [options]

  --jobs N       how many jobs (default: 10000000)
  --rounds N     how often each call is made (default: 7)
  --limit-ms N   exit with 1 when a median is above this (default: 300)
  --help         this text

Uses DATABASE_URL, which must be an empty database, or an embedded one that is deleted afterwards.
`;

async function main() {
  const { values } = parseArgs({
    options: {
      jobs: { type: "string", default: "10000000" },
      rounds: { type: "string", default: "7" },
      "limit-ms": { type: "string", default: "300" },
      help: { type: "boolean", short: "h" },
    },
  });
  if (values.help) return process.stdout.write(help);
  const { Millrace } = await import("../dist/index.js");
  const { HttpServer } = await import("../dist/http.js");
  const database = await openDatabase();
  const key = "a-key-for-measuring-only-0123456789";
  const millrace = await Millrace.connect({ databaseUrl: database.url, logLevel: "error" });
  const server = new HttpServer({ millrace, port: 0, adminKey: key });
  try {
    await server.start();
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    const began = performance.now();
    const filled = await fillJobs(client, Number(values.jobs), (text) => console.error(text));
    await client.end();
    console.error(`filled in ${Math.round((performance.now() - began) / 1_000)} s`);
    const call = caller(server.url, key);
    const rows = await measure(await pageCalls(call, filled), call, Number(values.rounds));
    print(rows, Number(values.jobs));
    const slow = rows.filter(({ median }) => median > Number(values["limit-ms"]));
    process.exitCode = slow.length > 0 ? 1 : 0;
  } finally {
    await server.stop();
    await millrace.stop();
    await database.drop();
  }
}

async function openDatabase() {
  const { DATABASE_URL: url } = process.env;
  if (url !== undefined) return { url, drop: async () => {} };
  const { startEmbedded } = await import("../dist/store/postgres/embedded.js");
  const dataDir = mkdtempSync(join(tmpdir(), "millrace-pages-"));
  const server = await startEmbedded({ dataDir });
  const drop = async () => {
    await server.stop();
    rmSync(dataDir, { recursive: true, force: true });
  };
  return { url: server.url, drop };
}

/** Gives status, time and body; a route that is not there says so instead of failing. */
const caller = (base, key) => async (path) => {
  const began = performance.now();
  const answer = await fetch(base + path, { headers: { authorization: `Bearer ${key}` } });
  const text = await answer.text();
  const ms = performance.now() - began;
  return { status: answer.status, ms, body: text === "" ? null : JSON.parse(text) };
};

async function measure(calls, call, rounds) {
  const rows = [];
  for (const { page, path } of calls) {
    const times = [];
    let status = 0;
    for (let i = 0; i < rounds; i++) {
      const answer = await call(path);
      status = answer.status;
      times.push(answer.ms);
    }
    const [first = 0] = times;
    const sorted = times.toSorted((a, b) => a - b);
    const median = sorted[Math.floor(sorted.length / 2)] ?? 0;
    rows.push({ page, path, status, first, median, worst: sorted.at(-1) ?? 0 });
  }
  return rows;
}

function print(rows, jobs) {
  const ms = (value) => value.toFixed(1);
  console.log(`| Page | Call (${jobs} jobs) | Status | First ms | Median ms | Worst ms |`);
  console.log("| --- | --- | --- | --- | --- | --- |");
  for (const { page, path, status, first, median, worst } of rows) {
    const cells = [page, `\`${path}\``, status, ms(first), ms(median), ms(worst)];
    console.log(`| ${cells.join(" | ")} |`);
  }
}

await main();

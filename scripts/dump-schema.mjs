// Migrates a fresh database and writes its schema to src/store/postgres/schema.sql, or compares.
// The built migrator is used, so that the dump shows what users get.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { parseArgs } from "node:util";
import pg from "pg";
import { repositoryRoot } from "./checker.mjs";
import { dumpSchema } from "./schema-dump.mjs";

const schema = "millrace";
const target = join(repositoryRoot, "src/store/postgres/schema.sql");
const shownTarget = relative(repositoryRoot, target);
const header = `-- What the migrations make, for review. Written by \`npm run schema\`, checked by \`npm run check\`.
-- Not a migration: nothing runs this file. History's daily partitions are left out.

`;
const help = `Usage: node scripts/dump-schema.mjs [options]

Migrates a fresh database and writes ${shownTarget}.

  --check              write nothing; exit with 1 when the file is not up to date
  --database-url URL   a server on which a database may be made and dropped
                       (default: an embedded PostgreSQL in a temporary folder)
  --help               this text
`;

async function main() {
  const { values } = parseArgs({
    options: {
      check: { type: "boolean" },
      "database-url": { type: "string" },
      help: { type: "boolean", short: "h" },
    },
  });
  if (values.help) return process.stdout.write(help);
  const url = values["database-url"];
  const body = url ? await dumpFresh(url) : await withEmbedded(dumpFresh);
  const text = header + body;
  if (values.check) return compare(text);
  writeFileSync(target, text);
  console.log(`wrote ${shownTarget}`);
}

async function withEmbedded(use) {
  const { startEmbedded } = await import("../dist/store/postgres/embedded.js");
  const folder = mkdtempSync(join(tmpdir(), "millrace-schema-"));
  try {
    const server = await startEmbedded({
      dataDir: join(folder, "data"),
      settings: { fsync: "off" },
    });
    try {
      return await use(server.url);
    } finally {
      await server.stop();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function dumpFresh(serverUrl) {
  const name = `millrace_schema_${process.pid}_${Date.now()}`;
  await withClient(serverUrl, (client) => client.query(`create database ${name}`));
  try {
    const url = new URL(serverUrl);
    url.pathname = `/${name}`;
    const { migrate } = await import("../dist/store/postgres/migrator.js");
    await migrate({ url: url.href, schema });
    return await withClient(url.href, (client) => dumpSchema(client, schema));
  } finally {
    await withClient(serverUrl, (client) => client.query(`drop database ${name} with (force)`));
  }
}

async function withClient(url, use) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}

function compare(text) {
  const committed = readIfThere(target);
  if (committed === text) return console.log(`${shownTarget} is up to date`);
  console.error(`${shownTarget} does not show what the migrations make; run: npm run schema`);
  if (committed !== "") for (const line of difference(committed, text)) console.error(line);
  process.exitCode = 1;
}

// Table by table, because the same column line stands in many tables.
function difference(before, after) {
  const sections = (text) =>
    new Map(text.split("\n\n").map((part) => [part.split("\n", 1)[0], part]));
  const [old, fresh] = [sections(before), sections(after)];
  const missingFrom = (lines, others, sign) =>
    lines.filter((line) => !others.includes(line)).map((line) => `${sign} ${line}`);
  return [...new Set([...old.keys(), ...fresh.keys()])].flatMap((name) => {
    const [was, is] = [old, fresh].map((map) => map.get(name)?.split("\n") ?? []);
    if (was.join("\n") === is.join("\n")) return [];
    return [`@ ${name}`, ...missingFrom(was, is, "-"), ...missingFrom(is, was, "+")];
  });
}

function readIfThere(path) {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error.code === "ENOENT") return "";
    throw error;
  }
}

await main();

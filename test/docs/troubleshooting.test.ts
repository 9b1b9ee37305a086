// The troubleshooting guide knows every error code there is, as it is, and no log line that there is not.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { expect, test } from "vitest";
import { type ErrorCode, errorCodes } from "../../src/domain/errors.ts";
import { statusOf } from "../../src/http/problem-status.ts";
import { type EventName, Events } from "../../src/runtime/events.ts";
import { createLog, logEvents } from "../../src/runtime/log.ts";
import { createDatabase } from "../support/postgres.ts";
import { root } from "../support/user-project.ts";
import { pages } from "./pages.ts";

const page = readFileSync(join(root, "docs/guides/troubleshooting.md"), "utf8");
const cells = (line: string) =>
  line
    .split("|")
    .slice(1, -1)
    .map((cell) => cell.trim());
const tableUnder = (heading: string) =>
  (page.split(`\n## ${heading}\n`)[1]?.split("\n## ")[0] ?? "")
    .split("\n")
    .filter((line) => line.startsWith("| `"))
    .map(cells);

test("the guide lists every error code with its meaning, status and a remedy", () => {
  const rows = tableUnder("Every error code");
  const listed = rows.map(([code = "", status, meaning]) => [
    code.replaceAll("`", ""),
    status,
    meaning,
  ]);
  const known = Object.entries(errorCodes).map(([code, meaning]) => [
    code,
    String(statusOf(code as ErrorCode)),
    meaning,
  ]);
  expect(listed).toEqual(known);
  for (const [code, , , remedy] of rows) expect(remedy, code).toMatch(/\S{2,}/);
});

test("the log lines it explains are those that are written", () => {
  const events = new Events();
  logEvents(events, createLog("silent"), "trace");
  const explained = tableUnder("What the log says").flatMap(([names = ""]) =>
    [...names.matchAll(/`([^`]+)`/g)].map(([, name]) => name),
  );
  expect(explained.length).toBeGreaterThan(10);
  const written = (name: string | undefined) =>
    name === "job.dead" || events.wants(name as EventName);
  expect(explained.filter((name) => !written(name))).toEqual([]);
});

test("its queries run", async () => {
  const blocks = pages.find(({ file }) => file === "docs/guides/troubleshooting.md")?.blocks ?? [];
  const queries = blocks.filter(({ language }) => language === "sql");
  expect(queries).toHaveLength(1);
  const database = await createDatabase();
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  for (const { text } of queries) expect((await client.query(text)).rows.length).toBeGreaterThan(0);
  await client.end();
  await database.drop();
});

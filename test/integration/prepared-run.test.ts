import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { systemClock } from "../../src/runtime/clock.ts";
import { Events } from "../../src/runtime/events.ts";
import type { Connection } from "../../src/store/postgres/connection.ts";
import { Database } from "../../src/store/postgres/database.ts";
import { statement } from "../../src/store/postgres/statement.ts";
import { createDatabase } from "../support/postgres.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

let drop: () => Promise<void>;
let proxy: TcpProxy;
let database: Database;
let connection: Connection;

beforeAll(async () => {
  const created = await createDatabase();
  drop = created.drop;
  proxy = await TcpProxy.start(created.url);
  database = new Database({
    ...{ url: proxy.url, schema: "millrace", poolSize: 1, queryTimeoutMs: 10_000 },
    ...{ events: new Events(), clock: systemClock, random: Math.random },
  });
});
afterAll(async () => {
  await database.close();
  await proxy.close();
  await drop();
});
beforeEach(() => {
  connection = database.reserve("prepared");
  return () => connection.close();
});

const types = statement(
  "types",
  `select $1::int, $2::text, null::text, $3::boolean, '{"a":[1]}'::json, 1.5::float8, to_timestamp(0)`,
);
const divide = statement("divide", "select (10 / n)::int from unnest($1::int[]) n");

test("reads each type as the driver does but for JSON, the first time and again", async () => {
  const row = [7, "é", null, true, '{"a":[1]}', 1.5, new Date(0)];
  for (const _ of ["first", "again"])
    expect(await connection.rows(types, [7, "é", true])).toEqual([row]);
});

test("knows what a statement answers without asking again", async () => {
  expect(await connection.rows(divide, ["{1,2}"])).toEqual([[10], [5]]);
  // So that the proxy has forgotten what was sent first.
  const ones = Array.from({ length: 200 }, () => 1);
  expect(await connection.rows(divide, [`{${ones}}`])).toHaveLength(200);
  // A message that asks for a description: D, its length, P for portal.
  const asked = proxy.loseQuestion("D\0\0\0\x06P");
  expect(await connection.rows(divide, ["{10}"])).toEqual([[1]]);
  await expect(connection.rows(statement("other", "select 1"), [])).rejects.toThrow();
  await asked;
});

test("goes on after an error of the statement, and after one in the text", async () => {
  await expect(connection.rows(divide, ["{0}"])).rejects.toMatchObject({ code: "22012" });
  await expect(connection.rows(divide, ["{x}"])).rejects.toMatchObject({ code: "22P02" });
  const wrong = statement("wrong", "select nothing from nowhere");
  for (const _ of ["first", "again"])
    await expect(connection.rows(wrong, [])).rejects.toMatchObject({ code: "42P01" });
  expect(await connection.rows(divide, ["{2}"])).toEqual([[5]]);
});

test("an error in the middle of the rows leaves none of them", async () => {
  await expect(connection.rows(divide, ["{1,2,0}"])).rejects.toMatchObject({ code: "22012" });
});

test("begins anew on a new connection", async () => {
  expect(await connection.rows(divide, ["{1}"])).toEqual([[10]]);
  proxy.cut();
  await expect(connection.rows(divide, ["{1}"])).rejects.toThrow();
  expect(await connection.rows(divide, ["{1}"])).toEqual([[10]]);
});

test("runs and other queries share one connection, each in its turn", async () => {
  const names = statement("names", "select $1::text as name");
  const answers = await Promise.all([
    connection.rows(divide, ["{1}"]),
    connection.query(names, ["a"]),
    connection.transaction(async (query, rows) => [
      await query(names, ["b"]),
      await rows(divide, ["{2}"]),
    ]),
    connection.rows(names, ["c"]),
  ]);
  expect(answers).toEqual([[[10]], [{ name: "a" }], [[{ name: "b" }], [[5]]], [["c"]]]);
});

test("goes on after what could not even be written", async () => {
  const unwritable = {
    toString() {
      throw new Error("no text");
    },
  };
  await connection.rows(divide, ["{1}"]);
  await expect(connection.rows(divide, [unwritable as never])).rejects.toThrow("no text");
  expect(await connection.rows(divide, ["{5}"])).toEqual([[2]]);
});

test("answers in the order in which it was asked, whatever each was", async () => {
  await connection.connect();
  const asked = [
    connection.rows(divide, ["{1}"]),
    connection.query(statement("", "select 2 as n")),
    connection.rows(divide, ["{0}"]).catch(() => "refused"),
    connection.transaction(async (_, rows) => rows(divide, ["{5}"])),
    connection.rows(divide, ["{10}"]),
  ];
  const order: number[] = [];
  for (const [i, answer] of asked.entries()) void answer.then(() => order.push(i));
  expect(await Promise.all(asked)).toEqual([[[10]], [{ n: 2 }], "refused", [[2]], [[1]]]);
  expect(order).toEqual([0, 1, 2, 3, 4]);
});

test("takes no late end of what it gave up for the end of the next", async () => {
  const impatient = new Database({
    ...{ url: proxy.url, schema: "millrace", poolSize: 1, queryTimeoutMs: 300 },
    ...{ events: new Events(), clock: systemClock, random: Math.random },
  });
  const hasty = impatient.reserve("hasty");
  const sleepy = statement(
    "sleepy",
    "select n from pg_sleep($1::float8), (values ($2::int)) v (n)",
  );
  expect(await hasty.rows(sleepy, [0, 1])).toEqual([[1]]);
  const slow = hasty.rows(sleepy, [0.6, 2]);
  const next = hasty.rows(sleepy, [0.1, 3]);
  await expect(slow).rejects.toMatchObject({ code: "ETIMEDOUT" });
  expect(await next).toEqual([[3]]);
  await hasty.close();
  await impatient.close();
});

test("says what a statement did before its commit, the first time and again, and nothing of one that fails", async () => {
  await connection.connect();
  const told: unknown[] = [];
  const send = (values: string[]) =>
    new Promise<void>((resolve) => {
      const done = (error: unknown, rows: unknown[][]) => {
        told.push(["done", error === undefined ? rows : "refused"]);
        resolve();
      };
      connection.send(divide, values, done, (rows) => told.push(["executed", [...rows]]));
    });
  for (const n of [1, 2]) {
    const held = proxy.holdCommit("divide");
    const done = send([`{${n}}`]);
    const commit = await held;
    await until("it is told", () => told.length > 0);
    expect(told.splice(0)).toEqual([["executed", [[10 / n]]]]);
    commit();
    await done;
    expect(told.splice(0)).toEqual([["done", [[10 / n]]]]);
  }
  await send(["{1,0}"]);
  expect(told).toEqual([["done", "refused"]]);
});

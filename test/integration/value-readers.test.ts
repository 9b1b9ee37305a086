import fc from "fast-check";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { defineJob, Millrace } from "../../src/index.ts";
import { arrayText } from "../../src/store/postgres/statement.ts";
import { types } from "../../src/store/postgres/value-readers.ts";
import { createDatabase } from "../support/postgres.ts";

let url: string;
let drop: () => Promise<void>;
let ours: pg.Client;
let theirs: pg.Client;

beforeAll(async () => {
  ({ url, drop } = await createDatabase());
  ours = new pg.Client({ connectionString: url, types });
  theirs = new pg.Client({ connectionString: url });
  await ours.connect();
  await theirs.connect();
});
afterAll(async () => {
  await ours.end();
  await theirs.end();
  await drop();
});

const read = async (client: pg.Client, expression: string, values: unknown[] = []) =>
  (await client.query({ text: `select ${expression}`, values, rowMode: "array" })).rows[0];

describe("values are read as the driver reads them by default", () => {
  test.each([
    "true, false, null::boolean, 1::smallint, -2::int, 3::oid, 4::bigint, 1.5::real, -2.5::float8, 1.10::numeric",
    `'{"a":[1,null,"x"]}'::json, '{"b":2}'::jsonb, 'null'::json, array['{"a":1}'::json, null]`,
    "'x'::text, '018f3b1e-7c2a-7def-8a1b-000000000001'::uuid, '(1,2)'::tid, '\\xdeadbeef'::bytea, ''::bytea",
    "to_timestamp(1789000000.123456), to_timestamp(0), 'infinity'::timestamptz, '-infinity'::timestamptz, '0044-03-15 BC'::timestamptz",
    "'12345-01-01 00:00:00.000001+00'::timestamptz, '2026-03-29 01:59:59.999999+00'::timestamptz",
    "array[]::text[], array['', 'NULL', null, 'a,b', '{}', '\"', '\\', E'\\n', 'é', ' x ']::text[]",
    "array[1, null, -3]::int[], array[1]::smallint[], array[9007199254740993]::bigint[], array[1.5, null]::float8[]",
    "array[true, false, null], array[to_timestamp(1), null], array['018f3b1e-7c2a-7def-8a1b-000000000001'::uuid]",
    "'[3:4]={7,8}'::int[], array['a'::varchar]",
  ])("%s", async (expressions) => {
    expect(await read(ours, expressions)).toEqual(await read(theirs, expressions));
  });

  test.each(["UTC", "Asia/Kolkata", "America/St_Johns", "Africa/Monrovia"])(
    "times in %s",
    async (zone) => {
      for (const client of [ours, theirs]) await client.query(`set timezone to '${zone}'`);
      // Before 1919 Monrovia was a quarter of a minute off.
      const times = "'1900-01-01'::timestamptz, '2026-07-01 12:00:00.5+00'::timestamptz";
      expect(await read(ours, times)).toEqual(await read(theirs, times));
    },
  );

  test("any texts in an array", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.option(fc.string({ unit: "grapheme" }))), async (texts) => {
        const clean = texts.map((text) => text?.replaceAll("\0", "") ?? null);
        expect(await read(ours, "$1::text[]", [arrayText(clean)])).toEqual([clean]);
      }),
      { numRuns: 200 },
    );
  });
});

test("what the application tells the driver changes nothing for Millrace", async () => {
  const { BOOL, INT2, INT4, INT8, FLOAT8, JSON: json, JSONB, TIMESTAMPTZ } = pg.types.builtins;
  const changed = [BOOL, INT2, INT4, INT8, FLOAT8, json, JSONB, TIMESTAMPTZ, 1009 as never];
  const before = changed.map((type) => pg.types.getTypeParser(type, "text"));
  for (const type of changed) pg.types.setTypeParser(type, (text) => `changed ${text}`);
  try {
    const millrace = await Millrace.connect({ databaseUrl: url, logLevel: "silent" });
    const job = defineJob({
      type: "typed",
      queue: "typed",
      run: ({ payload, job: { createdAt, attempt } }) => ({ payload, createdAt, attempt }),
    });
    await millrace.work([job]);
    const { id } = await millrace.enqueue(job, { n: 1 }, { key: "typed" });
    expect(await millrace.enqueue(job, { n: 1 }, { key: "typed" })).toEqual({ id, existing: true });
    const result = await millrace.result(id);
    expect(result).toMatchObject({ payload: { n: 1 }, attempt: 1 });
    const found = await millrace.get(id);
    expect(found).toMatchObject({ state: "completed", attempt: 1, payload: { n: 1 } });
    expect(found?.createdAt).toBeInstanceOf(Date);
    const [queue] = (await millrace.queues()).filter(({ name }) => name === "typed");
    expect(queue?.counts).toMatchObject({ enqueued: 1, completed: 1 });
    const tx = new pg.Client({ connectionString: url });
    await tx.connect();
    await tx.query("begin");
    const inside = await millrace.enqueue(job, { n: 2 }, { key: "inside", tx });
    await tx.query("commit");
    await tx.end();
    expect(await millrace.result(inside.id)).toMatchObject({ payload: { n: 2 } });
    await millrace.stop();
  } finally {
    changed.forEach((type, i) => {
      const parser = before[i];
      if (parser !== undefined) pg.types.setTypeParser(type, parser);
    });
  }
});

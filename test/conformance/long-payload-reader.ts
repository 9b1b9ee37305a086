// Payloads that lie beside each other are read together, others by their ids. PostgreSQL's own way, below the contract.

import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { systemClock } from "../../src/runtime/clock.ts";
import { Events } from "../../src/runtime/events.ts";
import { uuidv7 } from "../../src/runtime/uuid.ts";
import type { Connection } from "../../src/store/postgres/connection.ts";
import { Database } from "../../src/store/postgres/database.ts";
import { LongPayloadReader } from "../../src/store/postgres/long-payload-reader.ts";
import type { Topic } from "./stage.ts";

const letters = 1_000;
const newIds = (count: number) => Array.from({ length: count }, () => uuidv7());
const payloadOf = (id: string) => JSON.stringify(id).padEnd(letters);

export const longPayloadReader: Topic = (stage) => {
  let database: Database;
  let connection: Connection;
  let reader: LongPayloadReader;
  /** Which statements it took, and how many rows each brought. */
  let ways: [string, number][] = [];

  beforeAll(async () => {
    database = new Database({
      ...{ url: await stage().url(), schema: "millrace", poolSize: 1, queryTimeoutMs: 10_000 },
      ...{ events: new Events(), clock: systemClock, random: Math.random },
    });
    connection = database.reserve("reader");
  });
  afterAll(async () => {
    await connection.close();
    await database.close();
  });
  beforeEach(async () => {
    await stage().sql("truncate millrace.long_payload");
    reader = new LongPayloadReader({
      rows: async (source, values) => {
        const rows = await connection.rows(source, values);
        ways.push([source.name.replace("long_payloads_", ""), rows.length]);
        return rows;
      },
    });
    // How long they are shows in the first read.
    const first = newIds(20);
    await write(first);
    await reader.read(first);
    ways = [];
  });

  /** One after the other, in this order. */
  const write = async (ids: readonly string[]) => {
    await stage().sql(
      `insert into millrace.long_payload (job_id, tenant, payload)
      select id, 'acme', rpad('"' || id || '"', $2) from unnest($1::uuid[]) with ordinality r (id, n) order by n`,
      [ids, letters],
    );
  };
  const reads = async (ids: readonly string[], expected = ids) => {
    ways = [];
    expect(await reader.read(ids)).toEqual(expected.map(payloadOf));
    return ways;
  };

  it("reads what lies between the first and the last", async () => {
    for (const count of [10, 200, 1_000]) {
      const ids = newIds(count);
      await write(ids);
      expect(await reads(ids)).toEqual([["between", count]]);
    }
  });

  it("leaves out what lies among them", async () => {
    const [ids, others] = [newIds(100), newIds(10)];
    await write([...ids.slice(0, 50), ...others, ...ids.slice(50)]);
    expect(await reads(ids)).toEqual([["between", 110]]);
  });

  it("goes by the ids of a few", async () => {
    const ids = newIds(9);
    await write(ids);
    expect(await reads(ids)).toEqual([["of", 9]]);
  });

  it("reads nothing of what lies far apart, but goes by their ids", async () => {
    const ids = newIds(20);
    await write([...ids.slice(0, 10), ...newIds(200), ...ids.slice(10)]);
    expect(await reads(ids)).toEqual([
      ["between", 0],
      ["of", 20],
    ]);
  });

  it("goes by their ids where some lie elsewhere, in another order, or nowhere", async () => {
    const [outside, turned, [gone = "", ...left]] = [newIds(20), newIds(20), newIds(20)];
    await write([...outside.slice(5, 10), ...outside.slice(0, 5), ...outside.slice(10)]);
    await write([...turned].reverse());
    await write(left);
    for (const [ids, expected] of [[outside], [turned], [[gone, ...left], left]] as const) {
      reader = new LongPayloadReader(connection);
      await reader.read(left);
      expect(await reader.read(ids)).toEqual((expected ?? ids).map(payloadOf));
    }
  });

  it("tries it more rarely the more often it was in vain, and again as soon as it was not", async () => {
    const [apart, beside] = [newIds(20), newIds(20)];
    await write([...apart].reverse());
    await write(beside);
    const tried: number[] = [];
    for (let i = 0; i < 200; i++) {
      const [[way] = [""]] = await reads(apart);
      if (way === "between") tried.push(i);
    }
    expect(tried).toEqual([0, 2, 6, 14, 30, 62, 126, 191]);
    for (let i = 0; i < 64; i++) await reads(beside);
    for (let i = 0; i < 3; i++) expect(await reads(beside)).toEqual([["between", 20]]);
  });

  it("goes by the ids of those that fill a page each", async () => {
    const ids = newIds(20);
    await stage().sql(
      `insert into millrace.long_payload (job_id, tenant, payload)
      select id, 'acme', rpad('1', 5000) from unnest($1::uuid[]) id`,
      [ids],
    );
    const both = [
      ["between", 0],
      ["of", 20],
    ];
    for (const expected of [both, both.slice(1), both.slice(1)]) {
      ways = [];
      expect(await reader.read(ids)).toHaveLength(20);
      expect(ways).toEqual(expected);
    }
  });
};

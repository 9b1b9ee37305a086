// A place for one test's jobs: a database of its own on the shared embedded server, or a schema of
// its own in a database that was given. Its maker holds an advisory lock of the same name for as long
// as it lives, so whoever comes later recognises and removes what a dead process left behind.

import { randomBytes } from "node:crypto";
import pg from "pg";
import { fromCaller } from "../domain/errors.ts";
import { Client } from "../store/postgres/client.ts";
import { asRefusedConnect } from "../store/postgres/failures.ts";
import { sharedServer } from "./shared-server.ts";

export interface ThrowAway {
  readonly url: string;
  readonly schema: string;
  drop(): Promise<void>;
}

type LockHolder = pg.Client & { ref(): void; unref(): void };

interface Kind {
  readonly prefix: string;
  readonly list: string;
  readonly create: (name: string) => string;
  readonly drop: (name: string) => string;
}

const database: Kind = {
  prefix: "test_",
  list: "select datname as name from pg_database where starts_with(datname, $1)",
  create: (name) => `create database ${name} strategy file_copy`,
  drop: (name) => `drop database if exists ${name} with (force)`,
};

const schema: Kind = {
  prefix: "millrace_test_",
  list: "select nspname as name from pg_namespace where starts_with(nspname, $1)",
  create: (name) => `create schema ${name}`,
  drop: (name) => `drop schema if exists ${name} cascade`,
};

/** What is left over is removed a few at a time, so that a start never waits long for it. */
const mostSwept = 4;

export async function createThrowAway(databaseUrl: string | undefined): Promise<ThrowAway> {
  const kind = databaseUrl === undefined ? database : schema;
  const home = databaseUrl ?? (await sharedServer()).url;
  try {
    return await createAt(home, kind);
  } catch (error) {
    throw fromCaller(asRefusedConnect(error));
  }
}

const clientOf = (url: string): pg.Client =>
  new Client({ connectionString: url, application_name: "millrace testing" });

async function createAt(home: string, kind: Kind): Promise<ThrowAway> {
  const client = clientOf(home) as LockHolder;
  client.on("error", () => undefined);
  await client.connect();
  try {
    await sweep(client, kind);
    const name = `${kind.prefix}${randomBytes(8).toString("hex")}`;
    await lock(client, name);
    await client.query(kind.create(name));
    // A test that forgets to stop must not keep its process alive through us.
    client.unref();
    const drop = async () => {
      client.ref();
      await client.query(kind.drop(name)).finally(() => client.end());
    };
    return kind === schema
      ? { url: home, schema: name, drop }
      : { url: withDatabase(home, name), schema: "millrace", drop };
  } catch (error) {
    await client.end();
    throw error;
  }
}

async function sweep(client: pg.Client, kind: Kind): Promise<void> {
  const { rows } = await client.query<{ name: string }>(`${kind.list} limit 100`, [kind.prefix]);
  let swept = 0;
  for (const { name } of rows) {
    if (swept >= mostSwept) return;
    if (!(await lock(client, name))) continue;
    swept++;
    await client.query(kind.drop(pg.escapeIdentifier(name)));
    await client.query("select pg_advisory_unlock(hashtextextended($1, 0))", [name]);
  }
}

async function lock(client: pg.Client, name: string): Promise<boolean> {
  const { rows } = await client.query<{ locked: boolean }>(
    "select pg_try_advisory_lock(hashtextextended($1, 0)) as locked",
    [name],
  );
  return rows[0]?.locked === true;
}

function withDatabase(url: string, name: string): string {
  const changed = new URL(url);
  changed.pathname = `/${name}`;
  return changed.href;
}

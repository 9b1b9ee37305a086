import { randomUUID } from "node:crypto";
import { createServer } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openStore } from "../../src/client/open-store.ts";
import { loadConfig } from "../../src/config.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { Events } from "../../src/runtime/events.ts";
import { loadMigrations, migrate } from "../../src/store/postgres/migrator.ts";
import { ask } from "../support/embedded.ts";
import {
  createDatabase,
  findServerBinaries,
  startServer,
  type TestServer,
} from "../support/postgres.ts";

const open = (databaseUrl: string, options: { schema?: string; migrate?: boolean } = {}) =>
  openStore(loadConfig({ databaseUrl, ...options }, {}), {
    events: new Events(),
    clock: systemClock,
    random: Math.random,
  });

const fingerprint = (schema: string) => `
  select string_agg(line, e'\\n' order by line) as text from (
    select format('%s %s %s %s', c.relkind, c.relname, a.attname, format_type(a.atttypid, a.atttypmod)) as line
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    left join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
    where n.nspname = '${schema}'
    union all
    select replace(pg_get_indexdef(i.indexrelid), '${schema}.', '') from pg_index i
    join pg_class c on c.oid = i.indrelid join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = '${schema}'
    union all
    select p.proname || '(' || replace(pg_get_function_arguments(p.oid), '${schema}.', '') || ')'
    from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname = '${schema}'
  ) lines`;

async function schemaOf(url: string, schema = "millrace"): Promise<string> {
  return (await ask<{ text: string }>(url, fingerprint(schema))).text;
}

for (const { version, binDir } of await findServerBinaries()) {
  describe(`migrations on PostgreSQL ${version}`, () => {
    let server: TestServer;
    let database: Awaited<ReturnType<typeof createDatabase>>;
    beforeAll(async () => {
      server = await startServer({ binDir });
      database = await createDatabase(server.url);
    });
    afterAll(() => server?.drop());
    const fresh = () => createDatabase(server.url);

    it("are applied in order, once, and change nothing the second time", async () => {
      const known = (await loadMigrations()).map(({ version }) => version);
      const applied: number[] = [];
      const { url } = database;
      const onApplied = ({ version }: { version: number }) => applied.push(version);
      await migrate({ url, schema: "millrace", onApplied });
      expect(applied).toEqual(known);
      const before = await schemaOf(url);
      await migrate({ url, schema: "millrace", onApplied });
      expect(applied).toEqual(known);
      expect(await schemaOf(url)).toBe(before);
      await migrate({ url, schema: "millrace", apply: false });
    });

    it("are applied once by many that start together", async () => {
      const { url } = await fresh();
      const applied: number[] = [];
      const onApplied = ({ version }: { version: number }) => applied.push(version);
      const all = Array.from({ length: 5 }, () => migrate({ url, schema: "millrace", onApplied }));
      await Promise.all(all);
      expect(applied).toEqual((await loadMigrations()).map(({ version }) => version));
      expect(await schemaOf(url)).toBe(await schemaOf(database.url));
    });

    it("live in any schema, several beside each other", async () => {
      const { url } = await fresh();
      const stores = await Promise.all(
        ["jobs", "_other_2"].map((schema) => open(url, { schema, migrate: true })),
      );
      const queues = await Promise.all(
        stores.map(({ store }, i) => store.ensureQueues("", [`queue-${i}`])),
      );
      expect(queues.map((list) => list[0]?.id)).toEqual([1, 1]);
      expect(await stores[0]?.store.queues()).toHaveLength(1);
      for (const { close } of stores) await close();
      const strip = (text: string) => text.replace(/^r history_30_\d{8} .*\n/gm, "");
      expect(strip(await schemaOf(url, "jobs"))).toBe(strip(await schemaOf(url, "_other_2")));
      const { found } = await ask<{ found: boolean }>(
        url,
        "select to_regnamespace('millrace') is not null as found",
      );
      expect(found).toBe(false);
    });

    it("wait with what an older version could not live with, until there is none", async () => {
      const { url } = await fresh();
      const tables = ["job", "scheduled_job", "dead_job", "history"];
      await migrate({ url, schema: "millrace" });
      // As a schema that the version before has made, and this one has migrated.
      await ask(url, "delete from millrace.migration where version >= 1000");
      for (const table of tables)
        await ask(url, `alter table millrace.${table} alter column payload set not null`);
      await ask(
        url,
        "alter table millrace.producer add constraint no_tally_yet check (tally_queue_id is null)",
      );
      const applied: number[] = [];
      const onApplied = ({ version }: { version: number }) => applied.push(version);
      const migrated = await migrate({ url, schema: "millrace", onApplied });
      expect([migrated, applied]).toEqual([
        { allowed: { payloadsApart: false, tallies: false }, waiting: true },
        [],
      ]);
      const payload = JSON.stringify("word ".repeat(200));
      const put = async () => {
        const { store, close } = await open(url, { migrate: false });
        const [queue] = await store.ensureQueues("", ["mail"]);
        const producer = store.producer("ready");
        const job = { type: "t", tenant: "default", weight: 5, maxAttempts: 5, payload };
        const id = randomUUID();
        await producer.flush([{ ...job, id, queueId: queue?.id ?? 0 }], { notice: null });
        const [found] = await store.find([id]);
        await producer.close();
        await close();
        expect(found?.payload).toBe(JSON.parse(payload));
        const { own } = await ask<{ own: boolean }>(
          url,
          `select payload is not null as own from millrace.job where id = '${id}'`,
        );
        return own;
      };
      expect(await put()).toBe(true);
      const finished = await migrate({ url, schema: "millrace", finish: true, onApplied });
      const allowed = { payloadsApart: true, tallies: true };
      expect([finished, applied]).toEqual([{ allowed, waiting: false }, [1028, 2029]]);
      expect(await put()).toBe(false);
      await migrate({ url, schema: "millrace", finish: true, onApplied });
      expect(applied).toEqual([1028, 2029]);
      expect(await schemaOf(url)).toContain("long_payload");
    });

    it("are refused when a version made them that shuts this one out", async () => {
      const { url } = await fresh();
      await migrate({ url, schema: "millrace" });
      const newest = Math.max(...(await loadMigrations()).map(({ version }) => version));
      const note = (version: number) =>
        ask(url, `insert into millrace.migration (version, name) values (${version}, 'later')`);
      await note(999);
      await migrate({ url, schema: "millrace" });
      await note(newest + 1_001);
      for (const apply of [true, false])
        await expect(migrate({ url, schema: "millrace", apply })).rejects.toMatchObject({
          code: "SCHEMA_TOO_NEW",
        });
    });

    it("let those who may read counts read tallies", async () => {
      const { url } = await fresh();
      const role = `reader_${randomUUID().replaceAll("-", "")}`;
      await migrate({ url, schema: "millrace" });
      await ask(url, "drop view millrace.queue_tally");
      for (const column of ["tally_queue_id", "tally_minute", "tally_jobs"])
        await ask(url, `alter table millrace.producer drop column ${column}`);
      await ask(url, "delete from millrace.migration where version = 29");
      await ask(url, `create role ${role}`);
      await ask(url, `grant select, insert on millrace.queue_count to ${role}`);
      await migrate({ url, schema: "millrace" });
      const { rights } = await ask<{ rights: string[] }>(
        url,
        `select array(select what from unnest(array['select', 'insert']) what
          where has_table_privilege('${role}', 'millrace.queue_tally', what)) as rights`,
      );
      expect(rights).toEqual(["select"]);
    });

    it("give those who have rights to jobs the same to long payloads", async () => {
      const { url } = await fresh();
      const role = `worker_${randomUUID().replaceAll("-", "")}`;
      await migrate({ url, schema: "millrace" });
      await ask(url, "drop table millrace.long_payload");
      await ask(url, "delete from millrace.migration where version = 28");
      await ask(url, `create role ${role}`);
      await ask(url, `grant select, insert on millrace.job to ${role}`);
      await migrate({ url, schema: "millrace" });
      const { rights } = await ask<{ rights: string[] }>(
        url,
        `select array(select what from unnest(array['select', 'insert', 'update', 'delete']) what
          where has_table_privilege('${role}', 'millrace.long_payload', what)) as rights`,
      );
      expect(rights).toEqual(["select", "insert"]);
    });

    it("are missed by whoever may not apply them", async () => {
      const { url } = await fresh();
      await expect(open(url, { migrate: false })).rejects.toMatchObject({
        code: "SCHEMA_OUTDATED",
      });
      const { found } = await ask<{ found: boolean }>(
        url,
        "select to_regnamespace('millrace') is not null as found",
      );
      expect(found).toBe(false);
      await (await open(url)).close();
      await (await open(url, { migrate: false })).close();
    });

    it("leave nothing half done when one of them fails", async () => {
      const { url } = await fresh();
      await ask(url, "create schema millrace");
      await ask(url, "create table millrace.lease (mine int)");
      await expect(migrate({ url, schema: "millrace" })).rejects.toThrow("lease");
      const { tables } = await ask<{ tables: string[] }>(
        url,
        `select array_agg(relname::text order by relname) as tables from pg_class
        where relnamespace = 'millrace'::regnamespace and relkind = 'r'`,
      );
      expect(tables).toEqual(["lease", "migration"]);
      await ask(url, "drop table millrace.lease");
      await migrate({ url, schema: "millrace" });
    });
  });
}

it("a PostgreSQL that does not answer is said to be unavailable", async () => {
  const probe = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => probe.once("listening", resolve));
  const address = probe.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  await new Promise((resolve) => probe.close(resolve));
  await expect(open(`postgres://me:secret@127.0.0.1:${port}/x`)).rejects.toMatchObject({
    code: "DATABASE_UNAVAILABLE",
    message: expect.not.stringContaining("secret"),
  });
});

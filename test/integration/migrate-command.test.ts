import { existsSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { describe, expect, test } from "vitest";
import { runCommand } from "../support/command-line.ts";
import { ask, Workplace } from "../support/embedded.ts";
import { createDatabase } from "../support/postgres.ts";

describe("millrace migrate", () => {
  test("applies what is missing, once, and prints it beforehand on request", async () => {
    const database = await createDatabase();
    const env = { DATABASE_URL: database.url };
    const planned = await runCommand(["migrate", "--dry-run"], env);
    expect(planned.code).toBe(0);
    const applied = await runCommand(["migrate"], env);
    expect(applied.out).toMatch(/^applied 0001_core\n/);
    expect(applied.out).toContain('Done: schema "millrace"');
    const again = await runCommand(["migrate"], env);
    expect(again.out).toMatch(/^Nothing to do/);
    expect((await runCommand(["migrate", "--dry-run"], env)).out).toMatch(/^-- Nothing to do/);
    await database.drop();
  });

  test("makes what waits for the end of earlier versions when it is told so", async () => {
    const database = await createDatabase();
    const env = { DATABASE_URL: database.url };
    await runCommand(["migrate"], env);
    await ask(database.url, "delete from millrace.migration where version >= 1000");
    await ask(
      database.url,
      "alter table millrace.producer add constraint no_tally_yet check (tally_queue_id is null)",
    );
    const before = await runCommand(["migrate"], env);
    expect(before.out).toMatch(/^Nothing to do/);
    expect(before.out).toContain("npx millrace migrate --finish");
    expect((await runCommand(["doctor"], env)).out).toContain("npx millrace migrate --finish");
    const planned = await runCommand(["migrate", "--finish", "--dry-run"], env);
    expect(planned.out).toContain("values (1028, 'payloads_apart')");
    const finished = await runCommand(["migrate", "--finish"], env);
    expect(finished.out).toMatch(/^applied 1028_payloads_apart\napplied 2029_tallies\nDone/);
    expect(finished.out).not.toContain("--finish");
    expect((await runCommand(["doctor"], env)).out).not.toContain("--finish");
    await database.drop();
  });

  test("the printed SQL does the same when it is run by hand", async () => {
    const database = await createDatabase();
    const env = { DATABASE_URL: database.url };
    const { out } = await runCommand(["migrate", "--dry-run", "--schema", "jobs"], env);
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    await client.query(out);
    await client.end();
    expect((await runCommand(["migrate", "--schema", "jobs"], env)).out).toMatch(/^Nothing to do/);
    await database.drop();
  });

  test("uses the embedded database when there is no other, and a dry run creates none", async () => {
    const place = await Workplace.create();
    const args = ["migrate", "--data-dir", place.dataDir];
    expect((await runCommand([...args, "--dry-run"])).out).toContain("create table");
    expect(existsSync(join(place.dataDir, "cluster"))).toBe(false);
    expect((await runCommand(args)).out).toContain("applied 0001_core");
    expect(await place.isStopped()).toBe(true);
    await place.cleanUp();
  });

  test("a database that cannot be reached is explained, without its password", async () => {
    const env = { DATABASE_URL: "postgres://me:hush@127.0.0.1:1/none" };
    const { code, out, err } = await runCommand(["migrate"], env);
    expect(code).toBe(1);
    expect(err).toContain("code:  DATABASE_UNAVAILABLE");
    expect(err).toContain("DATABASE_URL");
    expect(out + err).not.toContain("hush");
  });
});

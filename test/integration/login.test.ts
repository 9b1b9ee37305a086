// A PostgreSQL that asks everybody for a password: who comes without one is told so, and keeps no socket.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Millrace } from "../../src/index.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { Events } from "../../src/runtime/events.ts";
import { Database } from "../../src/store/postgres/database.ts";
import { statement } from "../../src/store/postgres/statement.ts";
import { createTestMillrace } from "../../src/testing.ts";
import { runCommand } from "../support/command-line.ts";
import { refusal } from "../support/instance.ts";
import { startServer, type TestServer } from "../support/postgres.ts";
import { until } from "../support/until.ts";
import { createUserProject } from "../support/user-project.ts";

const noPassword =
  "PostgreSQL refused: it asks for a password, and none was given. Put one into DATABASE_URL.";
const ask = statement("ask", "select 1 as answer");
let server: TestServer;

beforeAll(async () => {
  server = await startServer();
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  await client.query("create role boss superuser login password 'secret'");
  await writeFile(join(server.dataDir, "pg_hba.conf"), "host all all all scram-sha-256\n");
  await client.end();
  await server.stop();
  await server.start();
});
afterAll(() => server.drop());

function urlOf(password: string): string {
  const url = new URL(server.url);
  url.username = "boss";
  url.password = password;
  return url.href;
}

function databaseAt(url: string): Database {
  const own = { schema: "millrace", poolSize: 1, queryTimeoutMs: 10_000, random: Math.random };
  return new Database({ ...own, url, clock: systemClock, events: new Events() });
}

const sockets = (): number =>
  process.getActiveResourcesInfo().filter((name) => name === "TCPSocketWrap").length;

/** A socket that stays open keeps its process from ending. */
async function keepsNone(attempt: () => Promise<unknown>): Promise<void> {
  const before = sockets();
  await attempt();
  await until("no socket is left", () => (sockets() <= before ? true : undefined));
}

describe("a connect without a password", () => {
  it("is refused with a code, and says what is missing", () =>
    keepsNone(async () => {
      const error = await refusal(Millrace.connect({ databaseUrl: urlOf(""), logLevel: "silent" }));
      expect([error.code, error.message]).toEqual(["DATABASE_REFUSED", noPassword]);
      expect(error.cause).toBeInstanceOf(Error);
    }));

  it("is refused so in a test, too", () =>
    keepsNone(async () => {
      const error = await refusal(createTestMillrace({ databaseUrl: urlOf("") }));
      expect([error.code, error.message]).toEqual(["DATABASE_REFUSED", noPassword]);
    }));

  it("leaves no socket behind in the pool, nor in a connection of its own", async () => {
    const database = databaseAt(urlOf(""));
    await keepsNone(() => expect(database.query(ask)).rejects.toThrow(/password/));
    const reserved = database.reserve("alone");
    await keepsNone(() => expect(reserved.query(ask)).rejects.toThrow(/password/));
    await reserved.close();
    await database.close();
  });

  it("lets the process end, and is no bug of ours on the command line", async () => {
    for (const args of [["queues"], ["jobs"], ["migrate"]]) {
      const { code, err } = await runCommand(args, { DATABASE_URL: urlOf("") });
      expect([args, code]).toEqual([args, 1]);
      expect(err).toContain(noPassword);
      expect(err).toContain("code:  DATABASE_REFUSED");
    }
    const project = await createUserProject();
    const program = `import { Millrace } from "millrace";
      await Millrace.connect().catch(({ code }) => console.log(code));`;
    const command = ["--input-type=module", "--eval", program];
    const ended = await project.run(process.execPath, command, { DATABASE_URL: urlOf("") });
    await project.remove();
    expect(ended).toEqual({ code: 0, output: "DATABASE_REFUSED\n" });
  });
});

describe("a connect with a password", () => {
  it("is refused where it is wrong, and keeps no socket", () =>
    keepsNone(async () => {
      const error = await refusal(
        Millrace.connect({ databaseUrl: urlOf("wrong"), logLevel: "silent" }),
      );
      expect(error.code).toBe("DATABASE_REFUSED");
      expect(error.message).toContain("password authentication failed");
    }));

  it("is answered where it is right", async () => {
    const database = databaseAt(urlOf("secret"));
    expect(await database.query(ask)).toEqual([{ answer: 1 }]);
    await database.close();
  });

  it("is refused by a database that takes no connections", async () => {
    const url = new URL(urlOf("secret"));
    url.pathname = "/template0";
    const error = await refusal(Millrace.connect({ databaseUrl: url.href, logLevel: "silent" }));
    expect(error.code).toBe("DATABASE_REFUSED");
    expect(error.message).toContain("not currently accepting connections");
  });
});

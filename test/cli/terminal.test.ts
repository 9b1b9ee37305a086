import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { Terminal } from "../../src/cli/terminal.ts";
import { createTerminalLog } from "../../src/cli/terminal-log.ts";
import { ago } from "../../src/cli/text.ts";
import { defineJob, Millrace, NonRetryableError } from "../../src/index.ts";
import { CommandStage, runHere } from "../support/command-line.ts";
import { Pty, type PtyOptions } from "../support/pty.ts";
import { until } from "../support/until.ts";

const stage = new CommandStage("file");
let millrace: Millrace;
let opened: Pty[] = [];

const hostile = "evil\u001b[2J\u001b]0;pwned\u0007";
const fail = defineJob({
  type: "fail",
  queue: "broken",
  run() {
    throw new NonRetryableError("no way");
  },
});
const slow = defineJob({
  type: "slow",
  queue: "busy",
  run: ({ signal }) => new Promise((done) => signal.addEventListener("abort", () => done(1))),
});

beforeAll(async () => {
  millrace = await Millrace.connect({ databaseUrl: stage.url, logLevel: "silent", drainMs: 0 });
  await millrace.configureQueue("quiet", {});
  const waiting = defineJob({ type: "t", queue: "quiet" });
  await millrace.enqueueMany(waiting, Array(7).fill({}));
  await millrace.pauseQueue("quiet");
  await millrace.work([fail, slow], { name: "mill-1", concurrency: 5 });
  await millrace.breakers.configure("bank", {});
  await millrace.breakers.open("bank", hostile, "ann");
  const { id } = await millrace.enqueue(fail, {});
  await millrace.waitFor(id);
  await millrace.enqueueMany(slow, [1, 2, 3]);
  await until("three run", async () => {
    const figures = await millrace.store.service.queues.figures();
    return figures.find(({ name }) => name === "busy")?.running === 3;
  });
});
afterAll(() => millrace.stop());
afterEach(async () => {
  await Promise.all(opened.map((one) => one.kill()));
  opened = [];
});

function open(args: readonly string[], options: PtyOptions = {}): Pty {
  const pty = new Pty(args, { ...options, env: { DATABASE_URL: stage.url, ...options.env } });
  opened.push(pty);
  return pty;
}

const rowOf = (screen: string, name: string) =>
  screen.split("\n").find((line) => line.startsWith(name)) ?? "";

test("top fits 80 × 24, obeys its keys, grows on resize, and gives the screen back", async () => {
  const top = open(["top", "--interval", "200ms"]);
  const first = await top.shows("q quit");
  expect(top.screen.isAlternate).toBe(true);
  expect(top.screen.cursorShown).toBe(false);
  const lines = top.screen.lines;
  expect(lines).toHaveLength(24);
  expect(lines[0]).toMatch(/^millrace top {2}postgres:.* \d\d:\d\d:\d\d UTC$/);
  expect(lines[0]).toHaveLength(80);
  expect(lines[1]).toMatch(
    /^no leader {3}1 worker, 5 slots {3}dispatch: direct {3}breakers: 1 of 1 open$/,
  );
  expect(lines[23]).toContain("sort by: waiting");
  expect(rowOf(first, "quiet")).toMatch(/^quiet +paused +7 +0 +\S+ +0 +0 +0$/);
  expect(rowOf(first, "busy")).toMatch(/^busy +active +0 +3 +- /);
  expect(rowOf(first, "broken")).toMatch(/ 1$/);
  expect(rowOf(first, "mill-1")).toMatch(/^mill-1 +3 of 5 +seen .* slow 3$/);
  // What somebody wrote as a reason is shown, not obeyed.
  expect(rowOf(first, "bank")).toMatch(/^bank +OPEN +evil·\[2J·\]0;pwned·$/);
  const order = (screen: string) =>
    ["quiet", "busy", "broken"].sort((a, b) => screen.indexOf(`\n${a}`) - screen.indexOf(`\n${b}`));
  expect(order(first)[0]).toBe("quiet");
  top.type("\u001b[C");
  expect(order(await top.shows("sort by: running"))[0]).toBe("busy");
  expect(top.screen.text).toMatch(/ WAITING +RUNNING▼ +OLDEST /);
  top.type("r");
  expect(order(await top.shows("(reversed)")).at(-1)).toBe("busy");

  await top.resize(120, 40);
  const wide = await until("it has grown", () => {
    const shown = top.screen.lines;
    return shown[39]?.includes("q quit") && shown[0]?.length === 120 && shown;
  });
  expect(wide).toHaveLength(40);
  await top.resize(60, 12);
  await until("it has shrunk", () => {
    const shown = top.screen.lines;
    return shown[11]?.includes("q quit") && (shown[0]?.length ?? 0) <= 60;
  });

  top.type("q");
  expect(await top.ended()).toBe(0);
  expect(top.screen.isAlternate).toBe(false);
  expect(top.screen.cursorShown).toBe(true);
  expect(top.screen.text).not.toContain("q quit");
});

test("top gives the screen back on Ctrl-C too, and prints one picture without a terminal", async () => {
  const top = open(["top"]);
  await top.shows("q quit");
  top.type("\u0003");
  expect(await top.ended()).toBe(0);
  expect([top.screen.isAlternate, top.screen.cursorShown]).toEqual([false, true]);
  const once = await runHere("top", "--once", "--interval", "100ms");
  expect(once.code).toBe(0);
  expect(once.out).toMatch(/^quiet +paused +7/m);
  expect(once.out).not.toContain("\u001b");
  const { queues, workers } = JSON.parse(
    (await runHere("top", "--json", "--interval", "100ms")).out,
  );
  expect(queues[0]).toMatchObject({ name: "quiet", waiting: 7, paused: true });
  expect(workers[0]).toMatchObject({ name: "mill-1", running: { slow: 3 } });
  const live = await runHere("top");
  expect([live.code, live.err]).toEqual([2, expect.stringContaining("--once")]);
});

test("doctor and explain speak in colours on a terminal, and without them when told", async () => {
  const doctor = open(["doctor"], { columns: 100, rows: 50 });
  expect(await doctor.ended()).toBe(1);
  expect(doctor.raw).toContain("\u001b[32mok  \u001b[39m  fsync");
  expect(doctor.screen.text).toMatch(/^ok {4}leader +none yet: workers stand in/m);
  expect(doctor.screen.text).toMatch(/^warn {2}dead letters +1$/m);
  const [job] = await millrace.store.service
    .readsOf(null)
    .search.jobs({ type: "t" }, null, 1)
    .then(({ jobs }) => jobs);
  const explain = open(["explain", job?.id ?? ""], { columns: 100, env: { NO_COLOR: "1" } });
  expect(await explain.ended()).toBe(0);
  expect(explain.screen.text).toContain(`is ready: Queue "quiet" is paused.`);
  expect(explain.raw).not.toContain("\u001b");
});

test("init says what it wrote", async () => {
  const folder = await mkdtemp(join(tmpdir(), "millrace-pty-"));
  await writeFile(join(folder, "package.json"), "{}");
  const init = open(["init"], { cwd: folder });
  expect(await init.ended()).toBe(0);
  expect(init.screen.text).toMatch(/^Wrote\n {2}jobs\/hello\.js\n {2}jobs\/worker\.js/);
  expect(init.screen.text).toContain("node --test jobs/hello.test.js");
  expect(init.raw).toContain("\u001b[1m");
  await rm(folder, { recursive: true });
});

test("what handlers log is shown to a person, what is about us only when it matters", () => {
  const said: string[] = [];
  const terminal = { style: (_: string, text: string) => text, printError: said.push.bind(said) };
  const log = createTerminalLog(terminal as unknown as Terminal, "warn", "info");
  log.info({ worker: "w" }, "worker.started");
  log.warn({ name: "nightly", payload: { secret: 1 } }, "trigger.missed");
  const ofJob = log.child({ job: "j-1", correlationId: "c" });
  ofJob.info(hostile);
  ofJob.debug("not now");
  ofJob.error({ err: new Error(hostile) }, "failed");
  expect(said.map((line) => line.slice(9))).toEqual([
    "warn  trigger.missed  name=nightly",
    "info  evil·[2J·]0;pwned·  job=j-1",
    "error failed  job=j-1 err=evil·[2J·]0;pwned·",
  ]);
});

test("what has happened is never in the future, whoever's clock is ahead", () => {
  const now = new Date(1_000_000);
  expect(ago(new Date(now.getTime() - 65_000), now)).toBe("1m 5s ago");
  expect(ago(new Date(now.getTime() + 40), now)).toBe("0.0s ago");
});

test("a question is asked before many dead letters are touched, and a no changes nothing", async () => {
  const args = ["dlq", "reprocess", "--matching", "type=fail", "--reason", "fixed"];
  const no = open(args);
  await no.shows("1 dead letter would be reprocessed. Go on? [y/N]");
  no.type("n\r");
  expect(await no.ended()).toBe(5);
  const pending = { status: "pending_review" as const };
  expect(await millrace.store.service.readsOf(null).deadLetters.count(pending)).toBe(1);
  const yes = open(args);
  await yes.shows("[y/N]");
  yes.type("y\r");
  expect(await yes.ended()).toBe(0);
  expect(yes.screen.text).toContain("1 dead letter reprocessed.");
});

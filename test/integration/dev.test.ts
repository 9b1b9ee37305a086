import { readFile } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Millrace } from "../../src/index.ts";
import { CommandLine, runCommand, runHere } from "../support/command-line.ts";
import { Workplace } from "../support/embedded.ts";
import { until } from "../support/until.ts";

interface Tick {
  readonly jobs_per_second: number;
  readonly waiting: number;
  readonly running: number;
  readonly completed: number;
  readonly retried: number;
  readonly dead: number;
}

const ticksOf = (out: string): Tick[] =>
  out
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line));

let place: Workplace;
let processes: CommandLine[];

beforeEach(async () => {
  place = await Workplace.create();
  processes = [];
});

afterEach(async () => {
  for (const { child } of processes) if (child.exitCode === null) child.kill("SIGKILL");
  await Promise.all(processes.map((one) => one.ended()));
  await place.cleanUp();
});

function dev(...args: string[]): CommandLine {
  const started = new CommandLine(["dev", "--data-dir", place.dataDir, ...args]);
  processes.push(started);
  return started;
}

const tickWith = (running: CommandLine, fits: (tick: Tick) => boolean) =>
  until("a tick that fits", () => {
    if (running.child.exitCode !== null) throw new Error(`it ended:\n${running.err}`);
    return ticksOf(running.out).find(fits);
  });

/** Several queues, tenants and priorities, a trigger of each kind that fires, and a breaker. */
async function showsEverything(dataDir: string): Promise<void> {
  const millrace = await Millrace.connect({ dataDir, logLevel: "silent" });
  try {
    const busy = await until("every queue has completed something", async () => {
      const queues = await millrace.queues();
      return queues.length >= 6 && queues.every(({ counts }) => counts.completed > 0) && queues;
    });
    expect(busy.map(({ name }) => name)).toContain("payments");
    const triggers = await until("both triggers have fired", async () => {
      const found = await millrace.triggers.list();
      return found.length === 2 && found.every(({ lastFiredAt }) => lastFiredAt !== null) && found;
    });
    expect(triggers.map(({ type }) => type).sort()).toEqual(["QUEUE", "TIME"]);
    expect(await millrace.breakers.list()).toMatchObject([{ name: "demo-bank" }]);
    const { jobs } = await millrace.store.service.readsOf(null).search.jobs({}, null, 500);
    const seen = (of: "tenant" | "weight") => new Set(jobs.map((job) => job[of]));
    expect(seen("tenant")).toEqual(new Set(["default", "acme", "globex"]));
    expect(seen("weight")).toEqual(new Set([0, 5, 10]));
    const [dead] = await millrace.deadLetters();
    expect(dead).toMatchObject({ type: "import.account", error: { class: "non_retryable" } });
    // Whoever starts next fires what is due, and would find one job more than was there.
    for (const { id } of triggers) await millrace.triggers.disable(id);
  } finally {
    await millrace.stop();
  }
}

describe("millrace dev", () => {
  test("makes progress, stops cleanly on Ctrl-C and goes on where it was", async () => {
    const first = dev("--json", "--jobs-per-second", "100");
    const seen = await tickWith(
      first,
      ({ completed, retried, dead }) => completed > 20 && retried > 0 && dead > 0,
    );
    await showsEverything(place.dataDir);
    await tickWith(first, ({ completed }) => completed > seen.completed);
    const ended = await first.stop("SIGINT");
    expect(ended.code).toBe(0);
    expect(ended.err).toContain("Creating an embedded PostgreSQL");
    expect(ended.err).toContain(`The data stays in ${place.dataDir}`);
    expect(await place.isStopped()).toBe(true);
    const last = ticksOf(ended.out).at(-1);
    expect(last?.running).toBe(0);

    const second = dev("--json", "--no-demo", "--for", "0");
    const again = await second.ended();
    expect(again.code).toBe(0);
    expect(again.err).not.toContain("Creating an embedded PostgreSQL");
    expect(ticksOf(again.out)[0]).toMatchObject({
      completed: last?.completed,
      dead: last?.dead,
      waiting: last?.waiting,
    });

    const fresh = await dev("--json", "--no-demo", "--fresh", "--for", "0").ended();
    expect(fresh.err).toContain(`Deleted the data in ${place.dataDir}`);
    expect(ticksOf(fresh.out)[0]).toMatchObject({ completed: 0, waiting: 0, dead: 0 });
  });

  test("a second one on the same folder joins the first and outlives it", async () => {
    const first = dev("--json");
    await tickWith(first, ({ completed }) => completed > 0);
    const second = dev("--json");
    await second.said("joined");
    await second.said("stop      Ctrl-C");
    expect(second.err).toMatch(
      new RegExp(`millrace dev runs here already: process ${first.child.pid}, http://127`),
    );
    expect(second.err).toMatch(/port {6}7\d{3} is taken, so it is another/);
    const refused = await dev("--fresh").ended();
    expect(refused).toMatchObject({ code: 1 });
    const users = [first, second].map(
      ({ child }) => `process ${child.pid} \\(node main\\.js dev\\)`,
    );
    expect(refused.err).toMatch(
      new RegExp(`in use; stop the other processes first: ${users.join(", ")}\\.`),
    );
    const port = new URL(/http:\/\/\S+(?=\/api)/.exec(first.err)?.[0] ?? "").port;
    const taken = await dev("--no-demo", "--port", port).ended();
    expect(taken.code).toBe(1);
    expect(taken.err).toContain(`Port ${port} of 127.0.0.1 is taken`);
    expect(taken.err).toMatch(/next: {2}Choose another: --port \d+; or --port 0/);
    expect(taken.err).not.toContain("bug");
    expect((await first.stop("SIGTERM")).code).toBe(0);
    const { completed } = ticksOf(second.out).at(-1) ?? { completed: 0 };
    await tickWith(second, (tick) => tick.completed > completed + 5);
    expect((await second.stop()).code).toBe(0);
    expect(await place.isStopped()).toBe(true);
  });

  test("writes plain lines when nobody watches, says where things are, shows no password", async () => {
    const running = dev();
    await running.said("jobs/s");
    await running.said("completed");
    const { code, out, err } = await running.stop();
    expect(code).toBe(0);
    expect(err).toBe("");
    expect(out).toMatch(/database {2}postgres:\/\/millrace@127\.0\.0\.1:\d+\/millrace\n/);
    expect(out).toContain(`data      ${place.dataDir}`);
    expect(out).toContain("stop      Ctrl-C");
    expect(out).not.toContain(await readFile(join(place.dataDir, "password"), "utf8"));
    expect(out).not.toContain("\u001b");
  });

  test("serves API and dashboard, prints where, the key it made, and a link that signs in", async () => {
    const running = dev("--no-demo", "--port", "0");
    await running.said("stop      Ctrl-C");
    expect(running.out).not.toContain("is taken");
    const [, link = ""] = running.out.match(/dashboard (http:\/\/\S+)\n/) ?? [];
    expect((await fetch(link)).headers.get("content-type")).toContain("text/html");
    const signIn = await fetch(new URL("/api/session", link), {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ ticket: new URL(link).hash.replace("#ticket=", "") }),
    });
    expect(await signIn.json()).toMatchObject({ role: "admin" });
    const [, url] = running.out.match(/api {7}(http:\/\/127\.0\.0\.1:\d+)\/api\n/) ?? [];
    const [, key] = running.out.match(/key {7}([0-9a-f]{64})\n/) ?? [];
    const headers = { authorization: `Bearer ${key}` };
    expect((await fetch(`${url}/api/jobs`, { headers })).status).toBe(200);
    expect((await fetch(`${url}/api/jobs`)).status).toBe(401);
    expect((await running.stop()).code).toBe(0);
  });

  test("stops by itself after --for, and says that DATABASE_URL is not used", async () => {
    const running = new CommandLine(["dev", "--data-dir", place.dataDir, "--for", "1"], {
      DATABASE_URL: "postgres://nobody@127.0.0.1:1/none",
    });
    processes.push(running);
    const { code, out } = await running.ended();
    expect(code).toBe(0);
    expect(out).toContain("DATABASE_URL is set, but dev keeps to its own database");
    expect(out).toContain("Stopped.");
  });

  test("a second Ctrl-C ends it at once, with 130", async () => {
    const running = dev();
    await running.said("running");
    const shown = running.out.match(/postgres:\/\/\S+/)?.[0] ?? "";
    const password = await readFile(join(place.dataDir, "password"), "utf8");
    const client = new pg.Client({ connectionString: shown.replace("@", `:${password}@`) });
    client.on("error", () => undefined);
    await client.connect();
    // The worker cannot end its lease, so the first Ctrl-C takes its time.
    await client.query("begin");
    await client.query("lock table millrace.lease in access exclusive mode");
    running.child.kill("SIGINT");
    await running.said("Stopping");
    expect((await running.stop("SIGINT")).code).toBe(130);
    await client.end().catch(() => undefined);
    await until("the server has stopped as well", () => place.isStopped());
  });

  test("a folder that cannot be used is explained without a stack", async () => {
    const args = ["dev", "--data-dir", "/proc/none"];
    const { code, err } = await runCommand(args);
    expect(code).toBe(1);
    expect(err).toMatch(/^error: .*\/proc\/none/);
    expect(err).toContain("code:  EMBEDDED_UNAVAILABLE");
    expect(err).toContain("next:  ");
    expect(err).not.toMatch(/^\s+at /m);
    expect((await runCommand(args, { LOG_LEVEL: "debug" })).err).toMatch(/^\s+at /m);
  });
});

describe("the command line", () => {
  test.each([
    ["--help"],
    ["dev", "--help"],
    ["migrate", "-h"],
    ["manager", "--help"],
    ["help", "dev"],
  ])("%s %s teaches by example", async (...args) => {
    const { code, out, err } = await runHere(...args);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toMatch(/^millrace/);
    expect(out).toMatch(/(?:Examples|Try it):\n {2}\S/);
  });

  test("--version is that of the package", async () => {
    const file = join(import.meta.dirname, "..", "..", "package.json");
    const { version } = JSON.parse(await readFile(file, "utf8"));
    expect((await runHere("--version")).out).toBe(`${version}\n`);
  });

  test.each([
    [["dve"], 'There is no command "dve". Did you mean "dev"?'],
    [["help", "migrat"], 'Did you mean "migrate"?'],
    [["dev", "--data-dri", "x"], 'There is no option "--data-dri". Did you mean "--data-dir"?'],
    [["dev", "--for", "soon"], '--for must be a number from 0 to 1000000, not "soon".'],
    [["dev", "--jobs-per-second", "0"], "--jobs-per-second must be a number"],
    [["dev", "extra"], "Unexpected argument 'extra'. See: npx millrace dev --help"],
  ])("%j is refused with exit code 2 and a hint", async (args, message) => {
    const { code, out, err } = await runHere(...args);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toContain(message);
    expect(err.trim().split("\n")).toHaveLength(1);
  });
});

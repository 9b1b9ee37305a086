import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { defineJob, Millrace } from "../../src/index.ts";
import { CommandStage, jsonLines, runHere } from "../support/command-line.ts";
import { die, obeyed, pay } from "../support/dying-jobs.ts";
import { until } from "../support/until.ts";

const stage = new CommandStage("file");
let millrace: Millrace;

const later = defineJob({ type: "later", queue: "money" });
const quick = defineJob({ type: "quick", queue: "fast", run: () => "done" });

beforeAll(async () => {
  millrace = await Millrace.connect({ databaseUrl: stage.url, logLevel: "silent" });
  await millrace.work([pay, quick], { concurrency: 5 });
});
afterAll(() => millrace.stop());

test("enqueues what it is told and says the id", async () => {
  const options = ["--queue", "other", "--tenant", "acme", "--key", "k-1", "--priority", "high"];
  const made = await runHere("enqueue", "t", '{"a":[1,"ü"]}', "--delay", "2h", ...options);
  expect([made.code, made.err]).toEqual([0, ""]);
  const job = await millrace.get(made.out.trim());
  expect(job).toMatchObject({ type: "t", queue: "other", tenant: "acme", state: "scheduled" });
  expect(job).toMatchObject({ payload: { a: [1, "ü"] }, weight: 0, idempotencyKey: "k-1" });
  expect(Number(job?.dueAt) - Number(job?.createdAt)).toBe(7_200_000);
  const again = await runHere("enqueue", "t", '{"a":[1,"ü"]}', "--delay", "2h", ...options);
  expect(again).toMatchObject({ code: 0, out: made.out });
  expect(again.err).toContain("was made before");
  const other = await runHere("enqueue", "t", '{"a":2}', "--delay", "2h", ...options);
  expect(other.code).toBe(4);
  expect(other.err).toContain("IDEMPOTENCY_CONFLICT");
});

test("waits for the result when asked, and reads the payload from standard input", async () => {
  const waited = await runHere("enqueue", "quick", "--queue", "fast", "--wait", "60s");
  expect(waited).toMatchObject({ code: 0, out: '"done"\n' });
  const failed = await runHere("enqueue", "pay", "--queue", "money", "--wait", "60s");
  expect(failed.code).toBe(4);
  expect(failed.err).toContain("JOB_FAILED");
  expect(failed.err).not.toMatch(obeyed);
  const piped = await stage.run(["enqueue", "t", "-"], {}, { input: '{"from":"stdin"}\n' });
  expect((await millrace.get(piped.out.trim()))?.payload).toEqual({ from: "stdin" });
});

test("a refusal leaves no queue behind, and a wait that is too short says what to ask", async () => {
  const unsafe = '{"password":"hunter2"}';
  const refused = await runHere("enqueue", "t", unsafe, "--queue", "refused");
  expect([refused.code, refused.err]).toEqual([4, expect.stringContaining("PAYLOAD_INVALID")]);
  await runHere("enqueue", "t", "--queue", "refused", "--priority", "urgent");
  expect((await millrace.queues()).map(({ name }) => name)).not.toContain("refused");
  const early = await runHere("enqueue", "t", "--queue", "nobody", "--wait", "10ms");
  expect(early.code).toBe(1);
  expect(early.err).toMatch(
    /Job (\S+) is still ready after 10 ms[\s\S]+npx millrace explain \1\n$/,
  );
});

test("lists by filters, page by page, for people and for programs", async () => {
  const made = await millrace.enqueueMany(later, [1, 2, 3], { delayMs: 3_600_000 });
  const ids = made.map(({ id }) => id).reverse();
  const { out, code } = await runHere("jobs", "--type", "later", "--state", "scheduled");
  expect(code).toBe(0);
  expect(out).toMatch(/^ID +STATE +TYPE +QUEUE +TENANT +TRY +WHEN +ERROR\n/);
  expect(out.match(/scheduled +later +money +default +0\/5 +due in 59m/g)).toHaveLength(3);
  const first = await runHere("jobs", "--type", "later", "--limit", "2", "--json");
  expect(jsonLines(first.out).map(({ id }) => id)).toEqual(ids.slice(0, 2));
  const words = await runHere("jobs", "--type", "later", "--limit", "2");
  const [, before = ""] = words.err.match(/--before (\S+)/) ?? [];
  const rest = await runHere("jobs", "--type", "later", "--before", before, "--json");
  expect(jsonLines(rest.out).map(({ id }) => id)).toEqual(ids.slice(2));
  const none = await runHere("jobs", "--queue", "nowhere");
  expect([none.code, none.out]).toEqual([0, ""]);
  expect(none.err).toContain("No job fits");
});

test("security 17: shows one job, control characters neutralised, its payload only when asked, and notes who asked", async () => {
  const [id = ""] = await die(millrace, 1);
  const shown = await runHere("jobs", "show", id);
  expect(shown.code).toBe(0);
  expect(shown.out).toMatch(/^state +dead$/m);
  expect(shown.out).toMatch(/^ +1 {2}\S+Z {2}.*dead {2}on .*no ·\]0;pwned· account/m);
  expect(shown.out).not.toMatch(obeyed);
  expect(shown.out).not.toContain("payload");
  const withPayload = await runHere("jobs", "show", id, "--payload", "--actor", "ann");
  expect(withPayload.out).toContain('"note": "no \\u001b]0;pwned\\u0007 account');
  expect(withPayload.out).not.toMatch(obeyed);
  const entries = await millrace.store.service.audit.list({ target: id }, null, 10);
  expect(entries).toMatchObject([{ actor: "ann", action: "job_payload_read" }]);
  const json = JSON.parse((await runHere("jobs", "show", id, "--json")).out);
  expect(json).toMatchObject({ id, state: "dead", payload: null, payload_masked: true });
});

test("cancels and retries, and refuses what the state does not allow", async () => {
  const { id } = await millrace.enqueue(later, {}, { delayMs: 3_600_000 });
  const cancelled = await runHere("jobs", "cancel", id, "--reason", "ordered twice");
  expect(cancelled.out).toBe(`Job ${id} is cancelled.\n`);
  const again = await runHere("jobs", "cancel", id);
  expect(again.code).toBe(4);
  expect(again.err).toContain("is cancelled already");
  expect(again.err).toContain(`npx millrace jobs show ${id}\n`);
  expect((await runHere("jobs", "retry", id)).err).toContain("retry needs --reason");
  const retried = await runHere("jobs", "retry", id, "--reason", "not twice after all", "--json");
  const { new_job_id } = JSON.parse(retried.out);
  expect((await millrace.get(new_job_id))?.meta.reprocessOf).toBe(id);
  expect((await runHere("jobs", "cancel", crypto.randomUUID())).code).toBe(3);
});

test("follows jobs as they come and change", async () => {
  const tail = stage.start(["jobs", "tail", "--queue", "fast", "--lines", "0", "--json"]);
  const seen = () => jsonLines(tail.out.slice(0, tail.out.lastIndexOf("\n") + 1));
  const slow = await until("a job is followed to its end", async () => {
    const { id } = await millrace.enqueue(quick, {}, { delayMs: 1_500 });
    const states = () => seen().filter((line) => line.id === id);
    await until("it has ended", async () => (await millrace.get(id))?.state === "completed");
    await until(
      "or was missed",
      () => states().some(({ state }) => state === "completed"),
      3_000,
    ).catch(() => undefined);
    // Whoever began to look in the middle of it sees the next one whole.
    return states()[0]?.state === "scheduled" && states().length >= 2 && states();
  });
  expect(slow.at(-1)?.state).toBe("completed");
  expect((await tail.stop()).code).toBe(0);
});

describe("queues", () => {
  test("are shown with what waits, runs, is oldest and has died", async () => {
    await millrace.enqueue(defineJob({ type: "stuck", queue: "idle" }), {});
    const { out } = await runHere("queues");
    expect(out).toMatch(
      /^QUEUE +TENANT +STATE +WAITING +RUNNING +OLDEST +COMPLETED +RETRIED +DEAD\n/,
    );
    expect(out).toMatch(/^idle +\(all\) +active +1 +0 +\d\.\ds +0 +0 +0$/m);
    const money = jsonLines((await runHere("queues", "--json")).out).find(
      ({ name }) => name === "money",
    );
    const dead = await millrace.store.service.readsOf(null).deadLetters.count({});
    expect(money).toMatchObject({ state: "active", dead, running: 0 });
  });

  test("pause and resume with an audit entry", async () => {
    const paused = await runHere("queues", "pause", "fast", "--reason", "a look", "--actor", "bo");
    expect(paused.out).toContain('Queue "fast" is paused');
    expect((await runHere("queues")).out).toMatch(/^fast +\(all\) +paused/m);
    const { id } = await millrace.enqueue(quick, {});
    expect((await runHere("explain", id)).out).toContain("queue_paused");
    expect((await runHere("queues", "resume", "fast")).out).toContain("runs again");
    expect(await millrace.result(id)).toBe("done");
    const idle = await runHere("queues", "resume", "fast", "--reason", "once more");
    expect([idle.code, idle.out]).toEqual([0, 'Queue "fast" is not paused.\n']);
    const resumed = await millrace.store.service.audit.list({ action: "queue_resume" }, null, 10);
    expect(resumed).toHaveLength(1);
    const entries = await millrace.store.service.audit.list({ action: "queue_pause" }, null, 10);
    expect(entries).toMatchObject([{ actor: "bo", reason: "a look" }]);
    const unknown = await runHere("queues", "pause", "fats");
    expect(unknown.code).toBe(3);
    expect(unknown.err).toContain('Did you mean "fast"?');
  });

  test("show and set every setting, which holds from then on", async () => {
    await millrace.configureQueue("tuned", {});
    const set = (...words: string[]) => runHere("queues", "set", "tuned", ...words);
    const by = ["--reason", "the bank asked", "--actor", "bo"];
    const limits = ["concurrency=1", "throttle=100/60s", "rate_limit=2/1d", "fair=no"];
    const done = await set(...limits, "max_retries=none", "description=for the bank", ...by);
    expect([done.code, done.err]).toEqual([0, ""]);
    const tuned = (await millrace.queues()).find(({ name }) => name === "tuned");
    expect(tuned).toMatchObject({
      ...{ concurrency: 1, throttle: { limit: 100, windowMs: 60_000 }, fair: false },
      ...{ rateLimit: { limit: 2, windowMs: 86_400_000 }, maxAttempts: null },
    });
    const { out } = await runHere("queues", "show", "tuned");
    for (const line of ["concurrency +1", "throttle +100/60s", "fair +no", "key_throttle +none"])
      expect(out).toMatch(new RegExp(`^${line}$`, "m"));
    expect(out).toBe(done.out);
    const shown = JSON.parse((await runHere("queues", "show", "tuned", "--json")).out);
    expect(shown).toMatchObject({ description: "for the bank", rate_limit: { limit: 2 } });
    const tried = [];
    for (let n = 0; n < 3; n++)
      tried.push((await runHere("enqueue", "x", "--queue", "tuned")).code);
    expect(tried).toEqual([0, 0, 4]);
    const [entry] = await millrace.store.service.audit.list({ action: "queue_update" }, null, 1);
    expect(entry).toMatchObject({ actor: "bo", reason: "the bank asked" });
    const changed = ["concurrency", "throttle", "rate_limit", "fair", "max_retries", "description"];
    expect(entry?.details).toEqual({ changed });
    const { out: free } = await set("throttle=none", "--json");
    expect(JSON.parse(free)).toMatchObject({ throttle: null, concurrency: 1 });
  });

  test("refuse settings that are none, and values that are wrong", async () => {
    await millrace.configureQueue("tuned", {});
    const refused = async (...words: string[]) => {
      const { code, err } = await runHere("queues", "set", ...words);
      return `${code} ${err}`;
    };
    expect(await refused("tuned", "concurency=1")).toMatch(/^2 .*Did you mean "concurrency"\?/);
    expect(await refused("tuned")).toMatch(/^2 Which setting\?/);
    expect(await refused("tuned", "concurrency")).toMatch(/^2 "concurrency" is no/);
    expect(await refused("tuned", "concurrency=many")).toMatch(/^2 concurrency is a number/);
    expect(await refused("tuned", "throttle=5")).toMatch(/^2 throttle is a rate/);
    expect(await refused("tuned", "fair=5")).toMatch(/^2 fair is yes or no/);
    expect(await refused("tuned", "concurrency=0")).toMatch(/"concurrency" must be a whole number/);
    expect(await refused("tunde", "fair=no")).toMatch(/^3 .*Did you mean "tuned"\?/);
    expect((await runHere("queues", "show", "tunde")).code).toBe(3);
  });
});

test("triggers are listed with their next fire times, and switched off and on", async () => {
  expect((await runHere("triggers")).err).toContain("There is no trigger yet");
  const settings = { type: "TIME", cron: "0 3 * * *", timeZone: "Europe/Berlin" } as const;
  const { id } = await millrace.triggers.create({ ...settings, name: "nightly", job: later });
  expect((await runHere("triggers")).out).toMatch(
    /^nightly +yes +- +in \d+[smhd].* +0 3 \* \* \* Europe\/Berlin +later +default/m,
  );
  const shown = await runHere("triggers", "show", "nightly", "--count", "3", "--json");
  const times = JSON.parse(shown.out).next_fire_times;
  expect(times).toHaveLength(3);
  expect(times.every((time: string) => /T0[12]:00:00/.test(time))).toBe(true);
  const off = await runHere("triggers", "disable", "nightly");
  expect(off.out).toContain("does not fire any more");
  expect((await millrace.triggers.get(id))?.enabled).toBe(false);
  expect((await runHere("triggers", "enable", id)).code).toBe(0);
  expect((await millrace.triggers.get(id))?.nextFireAt).not.toBeNull();
  const unknown = await runHere("triggers", "show", "nightlly");
  expect([unknown.code, unknown.err]).toEqual([3, expect.stringContaining('mean "nightly"?')]);
});

test.each([
  [["enqueue"], "Which type of job?"],
  [["enqueue", "t", "{oops"], "The payload is not JSON"],
  [["enqueue", "t", "{}", "more"], "put the payload in quotes"],
  [["enqueue", "t", "--delay", "soon"], "--delay is a time such as 500ms"],
  [["jobs", "--state", "deda"], 'There is no state "deda": "dead"?'],
  [["jobs", "shwo"], 'There is no command "jobs shwo". Did you mean "jobs show"?'],
  [["jobs", "show"], "Which id?"],
  [["jobs", "show", "abc"], '"abc" is no id: one looks like 0'],
  [["explain", "abc"], '"abc" is no id: one looks like 0'],
  [["dlq", "discard", "abc", "--reason", "x"], '"abc" is no id'],
  [["dlq", "reprocess"], "Which dead letter? Name its id; or all that fit: --matching type=…"],
  [["dlq", "type"], "A condition reads type=…, as in: npx millrace dlq type=<type>."],
  [["completion"], "Which shell: bash, zsh, fish?"],
  [["enqueue", "t", "--priority", "urgent"], "there are high, normal, low."],
  [["enqueue", "t", "--priority", "hihg"], 'Did you mean "high"?'],
  [["dlq", "reprocess", "type=a", "--reason", "x"], "put --matching before"],
  [["worker"], "Which modules? Or try the built-in jobs with --demo."],
  [["worker", "https://example.org/jobs.js"], "is a URL"],
])("%j is refused with exit code 2", async (args, said) => {
  const { code, err } = await runHere(...args);
  expect([code, err]).toEqual([2, expect.stringContaining(said)]);
  expect(err).toContain(`See: npx millrace `);
});

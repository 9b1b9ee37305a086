// Affiliate reports reconciled against two platforms. The reports wait in millrace/queue alone; what
// comes from PostgreSQL is clickhub's breaker, which all processes share. With REDIS_URL set the same
// program shares its queue with other processes, too.
import { BreakerOpenError, Millrace } from "millrace";
import { createQueue, Events, exponentialBackoff, QueueWorker } from "millrace/queue";
import { ownDatabase } from "../own-database.mjs";
import { createClickHub, createPayFeed } from "./platforms.mjs";
import { createBooks, createReports, priorityOf } from "./reports.mjs";

const millrace = await Millrace.connect({ ...ownDatabase(), logLevel: "error" });
const began = Date.now();
const say = (text) => console.log(`${String(Date.now() - began).padStart(5)} ms  ${text}`);

const reports = createReports();
const books = createBooks(reports);
const clickhub = createClickHub(books);
const payfeed = createPayFeed(books);

// Half a minute's cool-down in life, a third of a second here.
const name = `clickhub-${process.pid}`;
await millrace.breakers.configure(name, { failureThreshold: 4, openCooldownSeconds: 0.3 });
const breaker = millrace.breaker(name);
millrace.events.on("breaker.opened", () => {
  say(
    `clickhub is down: its breaker is OPEN after ${clickhub.calls} calls, and spares it the rest`,
  );
  setTimeout(clickhub.repair, 500);
});
millrace.events.on("breaker.closed", () => say("a probe came through: the breaker is CLOSED"));

const queue = await createQueue({ name: `affiliate-reports-${process.pid}`, logLevel: "error" });
const events = new Events();
events.on("item.failed", ({ id, attempt, class: kind, delayMs }) =>
  kind === "rate_limited"
    ? say(`${id} is told to wait ${delayMs} ms`)
    : say(`${id} failed (${kind}), attempt ${attempt}; again in ${delayMs} ms`),
);
events.on("item.buried", ({ id, message }) => say(`${id} is dead: ${message}`));

let open = reports.length;
let sessions = 0;
let refused = 0;
const findings = [];

const worker = new QueueWorker({
  queue,
  events,
  concurrency: 4,
  maxAttempts: 50,
  // As in life, but in a hurry: tenths of a second where a platform would get seconds.
  retryPolicy: exponentialBackoff({ baseMs: { transient: 100, retryable: 100 }, capMs: 500 }),
  // A refused call was never made: come back when the breaker lets calls through again.
  classifier(error) {
    if (!(error instanceof BreakerOpenError)) return undefined;
    refused++;
    return { class: "rate_limited", retryAfterMs: error.retryAfterMs };
  },
  // One session per report, closed whatever happens.
  scope: () => ({ openedAt: Date.now(), release: () => ++sessions }),
  async handler({ job, item }) {
    const confirmed =
      job.platform === "clickhub"
        ? await breaker.run(() => clickhub.confirmed(job))
        : await payfeed.confirmed(job);
    const verdict =
      confirmed === job.conversions ? "agrees" : `claims ${job.conversions}, has ${confirmed}`;
    findings.push({ ...job, verdict });
    const raised = item.priority === "high" ? " (suspicious rate: looked at first)" : "";
    say(`${job.report_id} ${job.platform}: ${verdict}${raised}`);
    open--;
  },
});

for (const report of reports) {
  await queue.enqueue(report, { id: report.report_id, priority: priorityOf(report) });
}
const { ready } = await queue.snapshot();
say(`${ready} reports are waiting`);
await worker.start();

await until(async () => open === 1 && (await queue.snapshot()).dead === 1);
const [dead] = await queue.dead();
say(`one is left: "${dead.error}". The account is opened, the report goes back`);
books.set(dead.job.report_id, { conversions: dead.job.conversions, missingFor: 0 });
await queue.requeue(dead.id);
await until(() => open === 0);

await queue.shutdown();
await worker.finished;

const { openings, state } = await millrace.breakers.get(name);
const wrong = findings.filter(({ verdict }) => verdict !== "agrees");
say(`${findings.length} reconciled, ${wrong.length} overstated: ${wrong.map((w) => w.report_id)}`);
say(`${worker.lastExceptions.length} exceptions on the way, ${sessions} sessions closed`);
say(`breaker: opened ${openings} times, refused ${refused} calls, ${state} now`);
await millrace.stop();
if (findings.length !== reports.length || openings === 0) process.exitCode = 1;

async function until(isSo) {
  while (!(await isSo())) {
    if (Date.now() - began > 60_000) throw new Error("this takes too long");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

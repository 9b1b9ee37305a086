// Affiliate reports reconciled against two platforms, with millrace/queue alone: no database. With
// REDIS_URL set the same program shares its queue with other processes.
import { createQueue, Events, exponentialBackoff, QueueWorker } from "millrace/queue";
import { createClickHub, createPayFeed } from "./platforms.mjs";
import { createBooks, createReports, priorityOf } from "./reports.mjs";

const began = Date.now();
const say = (text) => console.log(`${String(Date.now() - began).padStart(5)} ms  ${text}`);

const reports = createReports();
const books = createBooks(reports);
const platforms = { clickhub: createClickHub(books), payfeed: createPayFeed(books) };
const queue = await createQueue({ name: `affiliate-reports-${process.pid}`, warnDepth: 20 });

const events = new Events();
events.on("item.failed", ({ id, attempt, class: kind, delayMs }) =>
  say(`${id} failed (${kind}), attempt ${attempt}; again in ${delayMs} ms`),
);
events.on("item.buried", ({ id, message }) => say(`${id} is dead: ${message}`));

let open = reports.length;
let sessions = 0;
const findings = [];

const worker = new QueueWorker({
  queue,
  events,
  concurrency: 4,
  maxAttempts: 20,
  // As in life, but in a hurry: tenths of a second where a platform would get seconds.
  retryPolicy: exponentialBackoff({ baseMs: { transient: 100, retryable: 100 }, capMs: 500 }),
  // One session per report, closed whatever happens.
  scope: () => ({ openedAt: Date.now(), release: () => ++sessions }),
  async handler({ job, item }) {
    const confirmed = await platforms[job.platform].confirmed(job);
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

const wrong = findings.filter(({ verdict }) => verdict !== "agrees");
say(`${findings.length} reconciled, ${wrong.length} overstated: ${wrong.map((w) => w.report_id)}`);
say(`${worker.lastExceptions.length} exceptions on the way, ${sessions} sessions closed`);
if (findings.length !== reports.length) process.exitCode = 1;

async function until(isSo) {
  while (!(await isSo())) {
    if (Date.now() - began > 30_000) throw new Error("this takes too long");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

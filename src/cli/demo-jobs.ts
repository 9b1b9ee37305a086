// What the demo's worker runs: jobs that are quick, slow, delayed, flaky and hopeless, and a platform that is
// down for a while every minute.

import type { Millrace } from "../client/millrace.ts";
import { NonRetryableError, RetryableError } from "../domain/error-class.ts";
import { MillraceError } from "../domain/errors.ts";
import { systemClock } from "../runtime/clock.ts";
import { type AnyJobDefinition, defineJob } from "../worker/job-definition.ts";

export const sendMail = defineJob({ type: "mail.send", queue: "mail", run: () => "sent" });

export const remind = defineJob({ type: "mail.remind", queue: "mail", run: () => "reminded" });

export const makeReport = defineJob({
  type: "report.make",
  queue: "reports",
  run: async ({ signal }) => systemClock.sleep(200 + 600 * Math.random(), signal),
});

const platform = "demo-bank";
const outage = { everyMs: 60_000, forMs: 12_000 };

/** While the bank is down its breaker opens, and these wait without spending attempts. */
export const charge = defineJob({
  type: "payment.charge",
  queue: "payments",
  platform,
  run() {
    if (systemClock.now().getTime() % outage.everyMs < outage.forMs)
      throw new RetryableError("The bank does not answer.");
    return "charged";
  },
});

export const importPage = defineJob({
  type: "import.page",
  queue: "imports",
  retry: { baseMs: { retryable: 1_000 } },
  run({ attempt }) {
    if (attempt < 3 && Math.random() < 0.7) throw new Error("The other side did not answer.");
  },
});

export const importAccount = defineJob({
  type: "import.account",
  queue: "imports",
  run() {
    throw new NonRetryableError("There is no such account.");
  },
});

/** Items wait here for a trigger; nobody runs them one by one. */
export const invoice = defineJob({ type: "invoice", queue: "invoices" });

const bookInvoices = defineJob({
  type: "invoices.book",
  queue: "bookings",
  run({ payload }) {
    const { queue_item_ids: items = [] } = payload as { queue_item_ids?: readonly string[] };
    return { booked: items.length };
  },
});

const summary = defineJob({ type: "report.summary", queue: "reports", run: () => "summed up" });

export const demoJobs: readonly AnyJobDefinition[] = [
  sendMail,
  remind,
  makeReport,
  charge,
  importPage,
  importAccount,
  bookInvoices,
  summary,
];

export const demoQueues = ["mail", "reports", "payments", "imports", "invoices", "bookings"];

/** Made once; later starts find them. */
export async function prepareDemo(millrace: Millrace): Promise<void> {
  for (const queue of demoQueues) await millrace.configureQueue(queue, { retentionDays: 1 });
  const settings = { failureThreshold: 3, openCooldownSeconds: 5, returnSpreadSeconds: 5 };
  await millrace.breakers.configure(platform, settings);
  await ignoreTaken(
    millrace.triggers.create({
      ...{ type: "TIME", name: "demo-summary", cron: "*/5 * * * * *" },
      ...{ job: summary, payload: {} },
    }),
  );
  await ignoreTaken(
    millrace.triggers.create({
      ...{ type: "QUEUE", name: "demo-invoices", queue: invoice.queue },
      ...{ batchSize: 10, pollingIntervalMs: 5_000, job: bookInvoices, payload: {} },
    }),
  );
}

async function ignoreTaken(made: Promise<unknown>): Promise<void> {
  try {
    await made;
  } catch (error) {
    if (!(error instanceof MillraceError) || error.code !== "TRIGGER_NAME_TAKEN") throw error;
  }
}

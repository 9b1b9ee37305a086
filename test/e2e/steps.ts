// What people do on any page.

import type { Locator, Page } from "playwright-core";
import { defineJob, NonRetryableError } from "../../src/index.ts";
import type { Dashboard } from "../support/dashboard.ts";
import { newQueue } from "../support/instance.ts";
import { until } from "../support/until.ts";

export const heading = (page: Page, name: string | RegExp): Locator =>
  page.getByRole("heading", { level: 1, name });

export const button = (page: Page, name: string | RegExp): Locator =>
  page.getByRole("button", { name, exact: typeof name === "string" });

/** Waits until exactly this is shown somewhere. */
export const sees = (page: Page, text: string | RegExp): Promise<void> =>
  page.getByText(text).first().waitFor();

export const said = (page: Page, text: string | RegExp): Promise<void> =>
  page.locator(".toast").getByText(text).first().waitFor();

interface Answers {
  readonly reason?: string;
  readonly typed?: string;
}

/** Answers the dialog that is open, and waits until it has gone. */
export async function confirm(page: Page, action: string | RegExp, answers: Answers = {}) {
  const dialog = page.getByRole("dialog");
  await dialog.waitFor();
  if (answers.reason !== undefined) await dialog.locator("textarea").fill(answers.reason);
  if (answers.typed !== undefined) await dialog.getByLabel(/^Type /).fill(answers.typed);
  await dialog.getByRole("button", { name: action }).click();
  await dialog.waitFor({ state: "detached" });
}

/** A job that has died of this error, in a queue of its own unless told. */
export async function deadJob(
  dashboard: Dashboard,
  message: string,
  options: { readonly queue?: string; readonly type?: string; readonly payload?: unknown } = {},
): Promise<{ readonly id: string; readonly queue: string }> {
  const { queue = newQueue(), type = "doomed", payload = {} } = options;
  const doomed = defineJob({
    ...{ type, queue },
    run() {
      throw new NonRetryableError(message);
    },
  });
  const { id } = await dashboard.millrace.enqueue(doomed, payload);
  const worker = await dashboard.work([doomed]);
  await until("it is dead", async () => (await dashboard.millrace.get(id))?.state === "dead");
  await worker.stop();
  return { id, queue };
}

/** Jobs that nobody runs. */
export async function waitingJobs(
  dashboard: Dashboard,
  count: number,
  options: { readonly queue?: string; readonly type?: string; readonly reference?: string } = {},
): Promise<{ readonly ids: readonly string[]; readonly queue: string }> {
  const { queue = newQueue(), type = "waiting", reference } = options;
  const job = defineJob({ type, queue, run() {} });
  const ids: string[] = [];
  for (let i = 0; i < count; i++) {
    const more = reference === undefined ? {} : { reference: `${reference}-${i}` };
    ids.push((await dashboard.millrace.enqueue(job, { i }, more)).id);
  }
  return { ids, queue };
}

export async function queueId(dashboard: Dashboard, name: string): Promise<number> {
  const { queues } = await dashboard.call("GET", "/api/queues?limit=200");
  return queues.find((queue: { name: string }) => queue.name === name).id;
}

/** The last audit entry about this. */
export async function audited(dashboard: Dashboard, target: string, action: string) {
  const query = new URLSearchParams({ target, action });
  const { entries } = await dashboard.call("GET", `/api/audit?${query}`);
  return entries[0] as { reason: string | null; actor: string } | undefined;
}

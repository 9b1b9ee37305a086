import type { BrowserContext, Page } from "playwright-core";
import { expect, test } from "vitest";
import type { Dashboard } from "../support/dashboard.ts";
import { newQueue } from "../support/instance.ts";
import { queueId, sees } from "./steps.ts";

/** The service's answer, with these fields in place of its own. */
const answering = (change: object) => (context: BrowserContext) =>
  context.route("**/api/jobs/admin/queue/statistics*", async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...(await response.json()), ...change } });
  });

const tile = (page: Page, label: string | RegExp) =>
  page.locator(".figures > div").filter({ hasText: label }).locator(".value");

const cell = (page: Page, row: string, label: string) =>
  page.locator("tr").filter({ hasText: row }).locator(`td[data-label="${label}"]`);

export function ratesSuite(dashboard: Dashboard): void {
  /** A tenant with one queue, in which 600 jobs were completed this minute. */
  async function busyTenant() {
    const tenant = newQueue();
    const name = newQueue();
    const body = { name, tenant_id: tenant };
    const { id } = await dashboard.call("POST", "/api/queues", { body });
    await dashboard.query(
      `insert into millrace.queue_count (queue_id, process, minute, enqueued, completed)
      values ($1, gen_random_uuid(), date_trunc('minute', now()), 610, 600)`,
      [id],
    );
    return { id, name, key: await dashboard.key("manager", tenant) };
  }

  test("mean the same on every page, and a young system is not measured by time it did not have", async () => {
    const { name, key } = await busyTenant();
    const [from, to] = ["2026-01-01T00:00:00.000Z", "2026-01-01T00:02:00.000Z"];
    const page = await dashboard.open("/", { key, prepare: answering({ from, to }) });
    await tile(page, "Completed, since the start").getByText("300").waitFor();
    await cell(page, name, "Done /min").getByText("300").waitFor();
    await sees(page, "/min: since the start");
    await page.goto(`${dashboard.baseUrl}/queues`);
    await cell(page, name, "Done /min").getByText("300").waitFor();
    await sees(page, "/min: since the start");
  });

  test("say that they are of the last five minutes, and charts where their data begins", async () => {
    const { id, name, key } = await busyTenant();
    const age = (interval: string) =>
      dashboard.query("update millrace.queue set created_at = now() - $2::interval where id = $1", [
        ...[id, interval],
      ]);
    const chart = (page: Page) => page.getByRole("img", { name: /^Jobs completed and enqueued/ });
    await age("3 minutes");
    const page = await dashboard.open(`/queues/${id}`, { key });
    await chart(page).waitFor();
    await sees(page, /^no data before \d\d:\d\d$/);
    await age("1 day");
    await page.goto(`${dashboard.baseUrl}/`);
    await tile(page, "Completed, last 5 min").filter({ hasText: /\d/ }).waitFor();
    await chart(page).waitFor();
    expect(await page.getByText(/no data before/).count()).toBe(0);
    const [all, own] = await page.evaluate((row) => {
      const rows = [...document.querySelectorAll("tr")];
      const found = rows.find((one) => one.textContent?.includes(row));
      return [
        document.querySelector(".figures .value")?.firstChild?.textContent,
        found?.querySelector('td[data-label="Done /min"]')?.textContent,
      ];
    }, name);
    expect(all).toBe(own);
    expect(Number(all)).toBeGreaterThanOrEqual(120);
  });

  test("a queue in which all that waits is delayed does not say that it waits for a worker", async () => {
    const queue = newQueue();
    const body = { type: "later", queue, delay_ms: 3_600_000 };
    await dashboard.call("POST", "/api/jobs", { body });
    const page = await dashboard.open(`/queues/${await queueId(dashboard, queue)}`);
    await tile(page, "Waiting").getByText("1").waitFor();
    await sees(page, "all that wait are delayed");
  });
}

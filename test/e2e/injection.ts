// Text that would run if a page took it for anything but text, stored wherever text can be stored.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { defineJob, NonRetryableError } from "../../src/index.ts";
import type { Dashboard } from "../support/dashboard.ts";
import { until } from "../support/until.ts";
import { button, heading, queueId } from "./steps.ts";

const corpus = [
  "<script>window.ran=1</script>",
  '<img src=x onerror="window.ran=1">',
  '"><svg onload=window.ran=1>',
  "'-(window.ran=1)-'",
  "javascript:window.ran=1//",
  '</title></textarea><iframe srcdoc="<script>parent.ran=1</script>">',
  "{{constructor.constructor('window.ran=1')()}}",
  '<a href="javascript:window.ran=1">x</a><style>@import"//x"</style>',
];

/** All of them at once, short enough for a name. */
const hostile = (where: string) =>
  `${where} <img src=x onerror="window.ran=1"><script>window.ran=1</script>"'><svg onload=window.ran=1>javascript:window.ran=1`;

async function expectHarmless(page: Page): Promise<void> {
  const found = await page.evaluate(() => ({
    ran: (window as unknown as { ran?: number }).ran ?? null,
    made: document.querySelectorAll("img, iframe, svg[onload], object, embed, [onerror]").length,
    styles: document.querySelectorAll("style").length,
    links: [...document.querySelectorAll("a[href]")]
      .map((link) => link.getAttribute("href") ?? "")
      .filter((href) => !/^[/#]/.test(href)),
  }));
  expect(found).toEqual({ ran: null, made: 0, styles: 0, links: [] });
}

export function injectionSuite(dashboard: Dashboard): void {
  test("is shown as text on every page, and nothing of it runs", async () => {
    const { millrace, call } = dashboard;
    const queue = hostile("queue");
    const options = {
      tenant: hostile("tenant"),
      reference: hostile("reference"),
      key: hostile("key"),
      correlationId: hostile("correlation"),
    };
    const payload = { corpus, [corpus[0] as string]: corpus[1] };
    const dies = defineJob({
      ...{ type: hostile("type"), queue, platform: hostile("breaker") },
      run() {
        const error = new NonRetryableError(corpus.join(" "));
        error.stack = `Error: ${corpus.join("\n    at ")}`;
        throw error;
      },
    });
    const ends = defineJob({ type: hostile("done"), queue, run: () => ({ corpus }) });
    await millrace.configureQueue(queue, { description: hostile("description") });
    await millrace.tenants.configure(options.tenant, { weight: 2 });
    const dead = await millrace.enqueue(dies, payload, options);
    const done = await millrace.enqueue(ends, payload, { tenant: options.tenant });
    await dashboard.work([dies, ends], { name: hostile("worker") });
    await until("both have ended", async () => {
      const states = [await millrace.get(dead.id), await millrace.get(done.id)];
      return states[0]?.state === "dead" && states[1]?.state === "completed";
    });
    const other = await millrace.enqueue(ends, payload, { delayMs: 3_600_000 });
    await millrace.cancel(other.id, hostile("cancel reason"));
    const trigger = await call("POST", "/api/triggers", {
      body: {
        ...{ type: "TIME", name: hostile("trigger"), cron: "0 0 1 1 *", payload },
        ...{ job_type: hostile("job type"), job_queue: queue },
      },
    });
    const id = await queueId(dashboard, queue);
    await call("POST", `/api/queues/${id}/purge`, { body: { notes: corpus.join(" ") } });
    await call("POST", "/api/keys", { body: { name: hostile("key"), role: "staff" } });
    await millrace.breakers.open(hostile("breaker"), corpus.join(" "), hostile("actor"));

    const page = await dashboard.open("/", { isFresh: true });
    const search = new URLSearchParams({ queue, find: hostile("find"), by: "reference" });
    for (const [path, text] of [
      ["/", "Overview"],
      [`/jobs?${search}`, "Jobs"],
      ["/jobs", "Jobs"],
      [`/jobs/${dead.id}`, dies.type],
      [`/jobs/${done.id}`, ends.type],
      [`/jobs/${other.id}`, ends.type],
      ["/dead-letters", "Dead letters"],
      ["/queues", "Queues"],
      [`/queues/${id}`, queue],
      ["/triggers", "Triggers"],
      [`/triggers/${trigger.id}`, hostile("trigger")],
      ["/breakers", "Breakers"],
      ["/workers", "Workers and leader"],
      ["/tenants", "Tenants and keys"],
      ["/audit", "Audit"],
    ] as const) {
      await page.goto(dashboard.baseUrl + path);
      await heading(page, text).waitFor();
      await until("all is shown", async () => (await page.getByText("Loading…").count()) === 0);
      const show = button(page, "Show payload");
      if ((await show.count()) > 0) {
        await show.click();
        await page.getByRole("heading", { name: "Result", exact: true }).waitFor();
      }
      await expectHarmless(page);
    }
    // What people type is text, too: reasons, and the names of kept filters.
    await page.goto(`${dashboard.baseUrl}/jobs`);
    await button(page, "Save this filter").click();
    await page.getByLabel("Name of the filter").fill(corpus[1]?.slice(0, 40) ?? "");
    await page.keyboard.press("Enter");
    await page.reload();
    await heading(page, "Jobs").waitFor();
    await expectHarmless(page);
    await page.goto(`${dashboard.baseUrl}/jobs/${dead.id}`);
    await button(page, "Reprocess…").click();
    await page.getByRole("dialog").locator("textarea").fill(corpus.join(" "));
    await page.getByRole("dialog").getByRole("button", { name: "Reprocess" }).click();
    await page.getByText("Made again from").waitFor();
    await expectHarmless(page);
    await page.goto(`${dashboard.baseUrl}/audit`);
    await page
      .getByText(corpus[0] as string)
      .first()
      .waitFor();
    await expectHarmless(page);
  });
}

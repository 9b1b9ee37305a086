import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import type { Dashboard } from "../support/dashboard.ts";
import { newQueue } from "../support/instance.ts";
import { until } from "../support/until.ts";
import { deadJob, waitingJobs } from "./steps.ts";

export function liveSuite(dashboard: Dashboard): void {
  const figure = async (page: Page, label: string) => {
    const box = page.locator(".figures > div").filter({ hasText: label }).first();
    return box.textContent();
  };
  const status = (page: Page) => page.locator("footer .live");

  test("numbers move by themselves while the stream is open", async () => {
    await deadJob(dashboard, "the first");
    const quick = defineJob({ type: "quick", queue: newQueue(), run() {} });
    const { id } = await dashboard.millrace.enqueue(quick, {});
    await dashboard.work([quick]);
    await dashboard.millrace.waitFor(id);
    const page = await dashboard.open("/");
    await status(page).getByText("Live").waitFor();
    const before = await figure(page, "Completed");
    // Nothing but the figures of a queue that is there: no event tells of it.
    await dashboard.millrace.enqueueMany(quick, [{}, {}, {}]);
    await until("the number has changed", async () => (await figure(page, "Completed")) !== before);
    const dead = page.locator("nav .count");
    const count = Number(await dead.textContent());
    await deadJob(dashboard, "one more");
    await until("the dead are counted", async () => Number(await dead.textContent()) > count);
    await status(page).getByText("Live").waitFor();
  });

  test("without the stream they are asked for, and the page says so", async () => {
    await waitingJobs(dashboard, 1);
    const page = await dashboard.open("/", {
      prepare: (context) => context.route("**/api/events*", (route) => route.abort()),
    });
    await status(page).getByText("Every 5 s").waitFor();
    const before = await figure(page, "Enqueued");
    await waitingJobs(dashboard, 2);
    await until("the number has changed", async () => (await figure(page, "Enqueued")) !== before);
  });

  test("a hidden tab asks for nothing, and catches up when it is seen again", async () => {
    const page = await dashboard.open("/jobs");
    await status(page).getByText("Live").waitFor();
    const hide = (hidden: boolean) =>
      page.evaluate((isHidden) => {
        Object.defineProperty(document, "hidden", { value: isHidden, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
      }, hidden);
    await hide(true);
    await status(page).getByText("Paused").waitFor();
    const asked: string[] = [];
    page.on("request", (request) => asked.push(request.url()));
    const { queue } = await waitingJobs(dashboard, 1, { type: "while.hidden" });
    const watched = await dashboard.open(`/jobs?queue=${queue}`);
    await watched.getByRole("link", { name: "while.hidden" }).waitFor();
    expect(asked).toEqual([]);
    await hide(false);
    await page.getByRole("link", { name: "while.hidden" }).first().waitFor();
    await status(page).getByText("Live").waitFor();
  });
}

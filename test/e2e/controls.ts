import { expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import type { Dashboard } from "../support/dashboard.ts";
import { newQueue } from "../support/instance.ts";
import { until } from "../support/until.ts";
import { audited, button, confirm, heading, queueId, said, sees, waitingJobs } from "./steps.ts";

export function controlsSuite(dashboard: Dashboard): void {
  const queueOf = async (name: string) =>
    (await dashboard.millrace.queues()).find((queue) => queue.name === name);

  test("queues are made, changed, paused, resumed, purged and deleted", async () => {
    const name = newQueue();
    const page = await dashboard.open("/queues");
    await button(page, "New queue…").click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill(name);
    expect(await dialog.getByLabel(/Retries/).inputValue()).toBe("");
    await dialog.getByLabel(/Retries/).fill("2");
    await dialog.getByRole("button", { name: "Make the queue" }).click();
    await heading(page, name).waitFor();

    await page.getByLabel("Capacity", { exact: true }).fill("500");
    await page.getByLabel("Description").fill("for the mill");
    await button(page, "Save").click();
    await said(page, `${name} is changed.`);
    expect(await queueOf(name)).toMatchObject({
      ...{ capacity: 500, description: "for the mill", maxAttempts: 3, retentionDays: 30 },
    });
    // Once the page shows what was saved, the form is a new one.
    await sees(page, /for the mill/);

    await page.getByLabel("Run at once", { exact: true }).fill("4");
    await page.getByLabel("Start, at most").fill("20");
    await page.getByLabel("Start: in so many seconds").fill("0.5");
    await page.getByLabel("Tenants take turns").uncheck();
    await page.getByLabel("Capacity", { exact: true }).fill("");
    await button(page, "Save").click();
    await until("it is limited", async () => (await queueOf(name))?.concurrency === 4);
    const limited = await queueOf(name);
    expect(limited).toMatchObject({ throttle: { limit: 20, windowMs: 500 }, fair: false });
    expect(limited).toMatchObject({ capacity: null, keyThrottle: null, maxAttempts: 3 });
    const path = `/api/audit?action=queue_update&target=${limited?.id}`;
    const changed = async (): Promise<string[]> =>
      (await dashboard.call("GET", path)).entries[0].details.changed;
    // The entry follows the change, before the page is answered.
    await until("it is noted", async () => !(await changed()).includes("description"));
    expect((await changed()).sort()).toEqual(["capacity", "concurrency", "fair", "throttle"]);
    await page.getByText("of 500").waitFor({ state: "detached" });

    await page.getByLabel("Start, at most").fill("");
    await button(page, "Save").click();
    await until("it is free", async () => (await queueOf(name))?.throttle === null);

    await button(page, `Pause ${name}`).click();
    await confirm(page, "Pause", { reason: "the bank sleeps" });
    await button(page, `Resume ${name}`).waitFor();
    expect((await queueOf(name))?.paused).toBe(true);
    const id = String(await queueId(dashboard, name));
    await until("it is noted", async () => {
      const paused = await audited(dashboard, id, "queue_pause");
      return paused?.reason === "the bank sleeps";
    });
    await button(page, `Resume ${name}`).click();
    await confirm(page, "Resume");
    await button(page, `Pause ${name}`).waitFor();
    expect((await queueOf(name))?.paused).toBe(false);

    await waitingJobs(dashboard, 3, { queue: name });
    await button(page, "Purge…").click();
    await confirm(page, "Purge", { reason: "a mistake", typed: name });
    await said(page, "3 jobs deleted.");

    await waitingJobs(dashboard, 1, { queue: name });
    await button(page, "Delete…").click();
    await confirm(page, "Delete the queue", { typed: name });
    await heading(page, "Queues").waitFor();
    expect(await queueOf(name)).toBeUndefined();
  });

  test("a queue for which nobody says otherwise tries as often as the job's type says", async () => {
    const name = `${newQueue()} with spaces!`;
    const page = await dashboard.open("/queues");
    await button(page, "New queue…").click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill(name);
    await sees(page, "A shell will want this name in quotes.");
    await dialog.getByRole("button", { name: "Make the queue" }).click();
    await heading(page, name).waitFor();
    expect((await queueOf(name))?.maxAttempts).toBeNull();
  });

  test("queues are sorted and searched by the address", async () => {
    const [first, second] = [`a-${newQueue()}`, `b-${newQueue()}`];
    for (const name of [first, second]) await dashboard.millrace.configureQueue(name, {});
    const page = await dashboard.open("/queues?find=-q-&sort=-name");
    const names = page.getByRole("region", { name: "Queues" }).locator("[data-row]");
    const shown = async () =>
      (await names.allInnerTexts()).filter((name) => [first, second].includes(name));
    await until("both", async () => (await shown()).length === 2);
    expect(await shown()).toEqual([second, first]);
    await button(page, "Queue").click();
    await until("the other way", async () => (await shown())[0] === first);
    expect(new URL(page.url()).searchParams.get("sort")).toBe("name");
  });

  test("triggers are made with a preview of their times, disabled and deleted", async () => {
    const name = newQueue();
    const page = await dashboard.open("/triggers");
    await button(page, "New trigger…").click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill(name);
    await dialog.getByLabel("Type of its jobs").fill("report.build");
    await dialog.getByLabel("Cron").fill("not a rule");
    await dialog.locator(".warn").waitFor();
    await dialog.getByLabel("Cron").fill("30 5 1 1 *");
    await dialog.getByLabel("Time zone").fill("Asia/Kolkata");
    await dialog
      .getByText(/01 Jan \d{4}, 05:30:00/)
      .first()
      .waitFor();
    await dialog.getByRole("button", { name: "Make the trigger" }).click();
    await heading(page, name).waitFor();
    await page
      .getByRole("list", { name: "Next fire times" })
      .getByText(/05:30:00/)
      .first()
      .waitFor();
    const [made] = await dashboard.millrace.triggers.list({ name });
    expect(made).toMatchObject({ cron: "30 5 1 1 *", timeZone: "Asia/Kolkata", enabled: true });
    await button(page, "Disable").click();
    await said(page, `${name} is disabled.`);
    await button(page, "Enable").click();
    await button(page, "Disable").waitFor();
    await button(page, "Delete…").click();
    await confirm(page, "Delete the trigger");
    await heading(page, "Triggers").waitFor();
    expect(await dashboard.millrace.triggers.list({ name })).toEqual([]);
  });

  test("breakers are opened, closed and reset with a reason", async () => {
    const name = newQueue();
    await dashboard.millrace.breakers.configure(name, {});
    const page = await dashboard.open("/breakers");
    const row = page.locator("tr").filter({ hasText: name });
    const stateIs = async (state: string) =>
      until(
        `it is ${state}`,
        async () => (await dashboard.millrace.breakers.get(name))?.state === state,
      );
    await row.getByRole("button", { name: "Open…" }).click();
    await confirm(page, "Open", { reason: "they are down" });
    await stateIs("OPEN");
    await row.getByText("they are down").waitFor();
    await row.getByRole("button", { name: "Close…" }).click();
    await confirm(page, "Close", { reason: "they are back" });
    await stateIs("CLOSED");
    await row.getByRole("button", { name: "Reset…" }).click();
    await confirm(page, "Reset", { reason: "a fresh start" });
    await until(
      "it has forgotten",
      async () => (await dashboard.millrace.breakers.get(name))?.openings === 0,
    );
  });

  test("the audit trail is filtered and verified", async () => {
    const name = newQueue();
    await dashboard.millrace.configureQueue(name, {});
    const id = await queueId(dashboard, name);
    await dashboard.call("POST", `/api/queues/${id}/purge`, { body: { notes: `because ${name}` } });
    await dashboard.call("POST", `/api/queues/${id}/pause`, { body: { notes: "they asked" } });
    const page = await dashboard.open("/audit?action=queue_purge");
    await sees(page, `because ${name}`);
    await page.goto(`${dashboard.baseUrl}/audit?action=queue_pause`);
    const row = page.locator("tr").filter({ hasText: "they asked" });
    await row.getByRole("link", { name }).waitFor();
    await row.getByText("the service's own key").waitFor();
    await page.getByLabel("Target").fill("nothing-like-this");
    await page.keyboard.press("Enter");
    await sees(page, "No entry");
    await button(page, "Verify the chain").click();
    await sees(page, /^Whole: [\d,]+ entr/);
  });

  test("workers, leader and health are shown", async () => {
    const { queue } = await waitingJobs(dashboard, 0);
    await dashboard.work([defineJob({ type: "seen.here", queue, run() {} })]);
    const page = await dashboard.open("/workers");
    await sees(page, /1 live worker/);
    await sees(page, "Dispatch");
    await page.goto(`${dashboard.baseUrl}/health`);
    await sees(page, "PostgreSQL");
    await sees(page, /^(?:ready|not ready)$/);
  });
}

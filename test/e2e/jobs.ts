import { once } from "node:events";
import { expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import type { Dashboard } from "../support/dashboard.ts";
import { newQueue } from "../support/instance.ts";
import { until } from "../support/until.ts";
import { audited, button, confirm, deadJob, heading, said, sees, waitingJobs } from "./steps.ts";

export function jobsSuite(dashboard: Dashboard): void {
  test("are found by everything indexed, and the address holds the view", async () => {
    const { queue, ids } = await waitingJobs(dashboard, 3, { type: "to.find", reference: "REF" });
    const page = await dashboard.open("/jobs");
    const rows = page.getByRole("region", { name: "Jobs" }).locator("tbody tr");
    await page.getByLabel("Queue").selectOption(queue);
    await until("its jobs are shown", async () => (await rows.count()) === 3);
    await button(page, "dead").click();
    await sees(page, "No job matches");
    expect(new URL(page.url()).searchParams.get("state")).toBe("dead");
    await page.reload();
    await sees(page, "No job matches");
    expect(await page.getByLabel("Queue").inputValue()).toBe(queue);
    await button(page, "dead").click();
    await button(page, "ready").click();
    await until("they are back", async () => (await rows.count()) === 3);
    for (const [by, value] of [
      ["Reference", "REF-1"],
      ["Job id", String(ids[1])],
      ["Correlation id", String((await dashboard.millrace.get(String(ids[1])))?.correlationId)],
    ] as const) {
      await page.getByLabel("Find by").selectOption({ label: by });
      await page.getByLabel("Search").fill(value);
      await page.keyboard.press("Enter");
      await until(`it is found by ${by}`, async () => (await rows.count()) === 1);
      await page.getByRole("link", { name: "to.find" }).waitFor();
    }
  });

  test("what cannot be an id is not asked for, and offered as something else", async () => {
    await waitingJobs(dashboard, 1, { type: "by.reference", reference: "hello" });
    const page = await dashboard.open("/jobs");
    await page.locator('datalist option[value="by.reference"]').waitFor({ state: "attached" });
    const asked: string[] = [];
    page.on("request", (request) => asked.push(request.url()));
    await page.getByLabel("Search").fill("hello-0");
    await page.keyboard.press("Enter");
    await page
      .getByRole("alert")
      .getByText(/^“hello-0” is not a job id: one looks like/)
      .waitFor();
    expect(asked.filter((url) => url.includes("id=hello-0"))).toEqual([]);
    await page.getByRole("alert").getByRole("link", { name: "reference" }).click();
    await page.getByRole("link", { name: "by.reference" }).waitFor();
    await page.goto(`${dashboard.baseUrl}/jobs?type=by`);
    await sees(page, /found by their whole value: mail\.send, not mail/);
  });

  test("are paged through, and filters are kept", async () => {
    const { queue } = await waitingJobs(dashboard, 53, { type: "paged" });
    const page = await dashboard.open(`/jobs?queue=${queue}`);
    const rows = page.getByRole("region", { name: "Jobs" }).locator("tbody tr");
    await until("the first page", async () => (await rows.count()) === 50);
    await page.getByRole("link", { name: "Older" }).click();
    await until("the second page", async () => (await rows.count()) === 3);
    await page.goBack();
    await until("the first page again", async () => (await rows.count()) === 50);
    await button(page, "Save this filter").click();
    await page.getByLabel("Name of the filter").fill("mine");
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "Dead", exact: true }).click();
    await page.reload();
    await page.getByRole("link", { name: "mine" }).click();
    await until("the kept filter", async () => (await rows.count()) === 50);
    expect(new URL(page.url()).searchParams.get("queue")).toBe(queue);
    await button(page, "Forget the filter mine").click();
    expect(await page.getByRole("link", { name: "mine" }).count()).toBe(0);
  });

  test("show their timeline, their error with its stack, and their payload by right", async () => {
    const payload = { account: "zanzibar" };
    const { id } = await deadJob(dashboard, "There is no such account", { payload });
    const staff = await dashboard.open(`/jobs/${id}`, { key: await dashboard.key("staff") });
    await sees(staff, /failed for good/);
    await sees(staff, /NonRetryableError: There is no such account\s+at /);
    await sees(staff, "Managers can read it.");
    expect(await button(staff, "Show payload").count()).toBe(0);
    expect(await staff.content()).not.toContain("zanzibar");
    expect(await audited(dashboard, id, "job_payload_read")).toBeUndefined();
    const page = await dashboard.open(`/jobs/${id}`);
    await button(page, "Show payload").click();
    await sees(page, /"account": "zanzibar"/);
    expect(await audited(dashboard, id, "job_payload_read")).toBeDefined();
  });

  test("say why they wait", async () => {
    const { queue, ids } = await waitingJobs(dashboard, 1);
    await dashboard.millrace.pauseQueue(queue);
    const page = await dashboard.open(`/jobs/${ids[0]}`);
    await sees(page, `Queue "${queue}" is paused.`);
    const body = { type: "later", queue: newQueue(), delay_ms: 3_600_000 };
    const { id } = await dashboard.call("POST", "/api/jobs", { body });
    await page.goto(`${dashboard.baseUrl}/jobs/${id}`);
    await sees(page, /^It is delayed until \d\d \w+ \d{4}, \d\d:\d\d:\d\d\.$/);
  });

  test("are cancelled with a reason, and reprocessed as a linked job", async () => {
    const { ids } = await waitingJobs(dashboard, 1, { type: "to.cancel" });
    const page = await dashboard.open(`/jobs/${ids[0]}`);
    await button(page, "Cancel…").click();
    await confirm(page, "Cancel the job", { reason: "not wanted any more" });
    await said(page, "The job is cancelled.");
    await sees(page, "not wanted any more");
    await button(page, "Reprocess…").click();
    await confirm(page, "Reprocess", { reason: "wanted after all" });
    await page.locator(`a[href="/jobs/${ids[0]}"]`).click();
    await sees(page, "Made again as");
    const { entries } = await dashboard.call("GET", `/api/audit?target=${ids[0]}`);
    expect(entries.map(({ reason }: { reason: string }) => reason)).toContain("wanted after all");
  });

  test("that run are asked to stop", async () => {
    const queue = newQueue();
    const slow = defineJob({
      ...{ type: "slow", queue },
      async run({ signal }) {
        await once(signal, "abort");
        signal.throwIfAborted();
      },
    });
    const { id } = await dashboard.millrace.enqueue(slow, {});
    await dashboard.work([slow]);
    await until("it runs", async () => (await dashboard.millrace.get(id))?.state === "running");
    const page = await dashboard.open(`/jobs/${id}`);
    await button(page, "Cancel…").click();
    await confirm(page, "Cancel the job");
    await said(page, "The job was asked to stop.");
    await page.locator(".facts .mark").getByText("cancelled").waitFor();
  });

  test("are cancelled all that match, by their number", async () => {
    const { queue, ids } = await waitingJobs(dashboard, 4);
    const page = await dashboard.open(`/jobs?queue=${queue}&state=ready`);
    await button(page, "Cancel all that match…").click();
    const dialog = page.getByRole("dialog");
    const act = dialog.getByRole("button", { name: "Cancel 4 jobs" });
    await act.waitFor();
    await dialog.getByLabel(/^Type 4/).fill("3");
    expect(await act.isDisabled()).toBe(true);
    await confirm(page, "Cancel 4 jobs", { typed: "4", reason: "all of them" });
    await said(page, /4 jobs of 4/);
    const states = await Promise.all(
      ids.map(async (id) => (await dashboard.millrace.get(id))?.state),
    );
    expect(new Set(states)).toEqual(new Set(["cancelled"]));
    await heading(page, "Jobs").waitFor();
  });
}

import { expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import type { Dashboard } from "../support/dashboard.ts";
import { newQueue } from "../support/instance.ts";
import { until } from "../support/until.ts";
import { button, confirm, queueId, said, sees } from "./steps.ts";

export function tenantsSuite(dashboard: Dashboard): void {
  const tenantOf = async (name: string) =>
    (await dashboard.millrace.tenants.list()).find((tenant) => tenant.name === name);

  test("tenants are paused, resumed and given limits", async () => {
    const name = newQueue();
    await dashboard.millrace.tenants.configure(name, { weight: 2 });
    const page = await dashboard.open("/tenants");
    const row = page.locator("tr").filter({ hasText: name });
    await row.getByRole("button", { name: `Pause ${name}` }).click();
    await row.getByRole("button", { name: `Resume ${name}` }).waitFor();
    expect((await tenantOf(name))?.paused).toBe(true);
    await row.getByRole("button", { name: `Resume ${name}` }).click();
    await row.getByRole("button", { name: `Pause ${name}` }).waitFor();
    await row.getByRole("button", { name: "Limits…" }).click();
    const dialog = page.getByRole("dialog");
    // It stands in a cell whose text is aligned to the right.
    expect(await dialog.evaluate((one) => getComputedStyle(one).textAlign)).toBe("left");
    await dialog.getByLabel(/Share/).fill("7");
    await dialog.getByLabel("May enqueue").fill("100");
    await dialog.getByRole("button", { name: "Save" }).click();
    await said(page, `${name} is changed.`);
    expect(await tenantOf(name)).toMatchObject({
      ...{ weight: 7, rateLimit: { limit: 100, windowMs: 60_000 }, paused: false },
    });
  });

  test("of a queue that all use, a tenant is shown its own share", async () => {
    const [name, tenant] = [newQueue(), newQueue()];
    const job = defineJob({ type: "shared", queue: name });
    await dashboard.millrace.enqueueMany(job, [1, 2, 3], { tenant });
    await dashboard.millrace.enqueueMany(job, Array(8).fill(0), { tenant: "somebody-else" });
    const key = await dashboard.key("manager", tenant);
    const page = await dashboard.open(`/queues/${await queueId(dashboard, name)}`, { key });
    await sees(page, `All tenants use this queue; the figures are those of ${tenant}.`);
    await page.locator("dl, .figures").getByText("3", { exact: true }).first().waitFor();
    expect(await page.getByLabel("Run at once", { exact: true }).isDisabled()).toBe(true);
    expect(await page.content()).not.toContain("somebody-else");
  });

  test("a tenant is erased when its name is typed and a reason given", async () => {
    const name = newQueue();
    await dashboard.millrace.tenants.configure(name, { weight: 2 });
    const page = await dashboard.open("/tenants");
    await button(page, `Erase ${name}`).click();
    await confirm(page, "Erase", { typed: name, reason: "they asked for it" });
    await said(page, /are erased/);
  });

  test("keys are made and shown once, rotated and revoked", async () => {
    const name = newQueue();
    const page = await dashboard.open("/tenants");
    await button(page, "New key…").click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel(/^Name/).fill(name);
    await dialog.getByLabel("Role").selectOption("staff");
    await dialog.getByRole("button", { name: "Make the key" }).click();
    const secret = String(await page.getByRole("dialog").locator("code").textContent());
    const works = async (key: string) =>
      (
        await fetch(`${dashboard.baseUrl}/api/cluster`, {
          headers: { authorization: `Bearer ${key}` },
        })
      ).status === 200;
    expect(await works(secret)).toBe(true);
    await button(page, "I have it").click();
    expect(await page.content()).not.toContain(secret);
    await button(page, `Rotate ${name}`).click();
    await page.getByRole("dialog").getByRole("button", { name: "Rotate" }).click();
    await page.getByRole("heading", { name: `The key of ${name}` }).waitFor();
    expect(await page.getByRole("dialog").locator("code").textContent()).not.toBe(secret);
    await button(page, "I have it").click();
    await button(page, `Revoke ${name}`).click();
    await confirm(page, "Revoke");
    await page.locator("tr").filter({ hasText: name }).getByText("revoked").waitFor();
    await until("it is refused", async () => !(await works(secret)));
  });
}

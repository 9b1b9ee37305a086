import { expect, test } from "vitest";
import type { Dashboard } from "../support/dashboard.ts";
import { adminKey } from "../support/http.ts";
import { button, heading, sees } from "./steps.ts";

const everyPage = [
  ...["Overview", "Jobs", "Dead letters", "Queues", "Triggers", "Breakers"],
  ...["Workers and leader", "Tenants and keys", "Audit", "Health"],
];

export function signInSuite(dashboard: Dashboard): void {
  test("refuses a wrong key in words, and with the right one opens the page that was asked for", async () => {
    const page = await dashboard.openUnknown("/queues?sort=name");
    await page.getByLabel("API key").waitFor();
    expect(await page.getByRole("status").count()).toBe(0);
    await page.getByLabel("API key").fill("not-a-key-that-anybody-has");
    await button(page, "Sign in").click();
    await page
      .getByRole("alert")
      .getByText(/not known/)
      .waitFor();
    await page.getByLabel("API key").fill(adminKey);
    await button(page, "Sign in").click();
    await heading(page, "Queues").waitFor();
    expect(page.url()).toBe(`${dashboard.baseUrl}/queues?sort=name`);
    const kept = await page.evaluate(() => document.cookie + JSON.stringify({ ...localStorage }));
    expect(kept).not.toContain("millrace_session");
    expect(kept).not.toContain(adminKey);
  });

  test("takes a ticket once, and out of the address at once; then says that it is used up, or that the session has ended", async () => {
    const ticket = dashboard.server.createTicket();
    const page = await dashboard.openUnknown(`/jobs#ticket=${ticket}`);
    await heading(page, "Jobs").waitFor();
    expect(page.url()).toBe(`${dashboard.baseUrl}/jobs`);
    await page.context().clearCookies();
    await page.reload();
    await page
      .getByRole("status")
      .getByText(/^The session has ended/)
      .waitFor();
    const second = await dashboard.openUnknown(`/jobs#ticket=${ticket}`);
    await second.getByLabel("API key").waitFor();
    await second
      .getByRole("status")
      .getByText(/^This link was used, or has expired/)
      .waitFor();
    expect(second.url()).toBe(`${dashboard.baseUrl}/jobs`);
    // Pasted where the page is open already, a new link changes no more than the part behind the #.
    await second.goto(`${dashboard.baseUrl}/jobs#ticket=${dashboard.server.createTicket()}`);
    await heading(second, "Jobs").waitFor();
    expect(second.url()).toBe(`${dashboard.baseUrl}/jobs`);
  });

  test("signs out, and asks for a key again when the session is over", async () => {
    const key = await dashboard.key("manager");
    const page = await dashboard.open("/queues", { key });
    await heading(page, "Queues").waitFor();
    const other = await page.context().newPage();
    await other.goto(`${dashboard.baseUrl}/health`);
    await button(other, "Sign out").click();
    await other.getByLabel("API key").waitFor();
    await other.getByRole("status").getByText("You are signed out.").waitFor();
    await page.reload();
    await page.getByLabel("API key").waitFor();
    expect(page.url()).toBe(`${dashboard.baseUrl}/queues`);
  });

  const names = async (key: string) => {
    const page = await dashboard.open("/", { key });
    await page.locator("main h1, main .note-box").first().waitFor();
    return page.getByRole("navigation", { name: "Pages" }).getByRole("link").allInnerTexts();
  };

  test.each([
    ["staff", undefined, ["Dead letters", "Tenants and keys", "Audit"]],
    [
      "staff",
      "acme",
      ["Dead letters", "Tenants and keys", "Audit", "Breakers", "Workers and leader"],
    ],
    ["manager", undefined, ["Tenants and keys"]],
    ["admin", undefined, []],
    ["producer", "acme", everyPage.filter((name) => name !== "Jobs")],
    ["robot", "acme", everyPage],
  ] as const)("shows %s (%s) every page but %j", async (role, tenant, hidden) => {
    const shown = await names(await dashboard.key(role, tenant));
    const plain = shown.map((name) => name.replace(/\s*[\d.,KM]+$/, ""));
    expect(plain).toEqual(
      everyPage.filter((name) => !(hidden as readonly string[]).includes(name)),
    );
  });

  test("offers staff nothing that the service would refuse, and shows what it refuses", async () => {
    const key = await dashboard.key("staff");
    await dashboard.millrace.configureQueue("for-staff", {});
    const page = await dashboard.open("/queues", { key });
    await page.getByRole("link", { name: "for-staff" }).click();
    await heading(page, "for-staff").waitFor();
    for (const name of ["Pause", "Purge", "Delete", "Save", "New queue"])
      expect(await button(page, new RegExp(`^${name}`)).count()).toBe(0);
    await page.goto(`${dashboard.baseUrl}/dead-letters`);
    await page
      .getByRole("alert")
      .getByText(/staff may not do this/)
      .first()
      .waitFor();
    await page.goto(`${dashboard.baseUrl}/nowhere`);
    await sees(page, /no such page/);
  });
}

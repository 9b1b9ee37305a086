import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import type { Dashboard } from "../support/dashboard.ts";
import { button, heading, waitingJobs } from "./steps.ts";

const inDialog = (page: Page) =>
  page.evaluate(() => document.querySelector("dialog")?.contains(document.activeElement) ?? false);
const focused = (page: Page) => page.evaluate(() => document.activeElement?.textContent ?? "");

export function keyboardSuite(dashboard: Dashboard): void {
  test("the first tab stop skips to the page", async () => {
    const page = await dashboard.open("/queues");
    await heading(page, "Queues").waitFor();
    await page.keyboard.press("Tab");
    expect(await focused(page)).toBe("Skip to the page");
    await page.keyboard.press("Enter");
    expect(await page.evaluate(() => document.activeElement?.id)).toBe("main");
  });

  test("what has the focus is seen to have it", async () => {
    const page = await dashboard.open("/queues");
    await heading(page, "Queues").waitFor();
    for (let i = 0; i < 4; i++) await page.keyboard.press("Tab");
    const outline = await page.evaluate(() => {
      const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement as Element);
      return [outlineStyle, outlineWidth];
    });
    expect(outline).toEqual(["solid", "2px"]);
  });

  test("pages, search and rows are reached by shortcuts, which are silent while one types", async () => {
    const { queue } = await waitingJobs(dashboard, 2, { type: "by.keyboard" });
    const page = await dashboard.open("/");
    await heading(page, "Overview").waitFor();
    for (const [key, title] of [
      ...[["q", "Queues"] as const, ["d", "Dead letters"] as const, ["a", "Audit"] as const],
      ...[["j", "Jobs"] as const],
    ]) {
      await page.keyboard.press("g");
      await page.keyboard.press(key);
      await heading(page, title).waitFor();
    }
    await page.keyboard.press("/");
    await page.keyboard.type("gq");
    expect(await page.getByLabel("Search").inputValue()).toBe("gq");
    await page.goto(`${dashboard.baseUrl}/jobs?queue=${queue}`);
    await page.getByRole("link", { name: "by.keyboard" }).first().waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    await page.keyboard.press("k");
    await page.keyboard.press("Enter");
    await heading(page, "by.keyboard").waitFor();
  });

  test("dialogs hold the focus, close on Escape and give it back", async () => {
    const page = await dashboard.open("/queues");
    const opener = button(page, "New queue…");
    await opener.focus();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    for (let i = 0; i < 12; i++) {
      const holds = await page.evaluate(
        () =>
          document.activeElement === document.body ||
          (document.querySelector("dialog")?.contains(document.activeElement) ?? false),
      );
      expect(holds).toBe(true);
      await page.keyboard.press("Tab");
    }
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    expect(await focused(page)).toBe("New queue…");
    await page.keyboard.press("?");
    await page.getByRole("heading", { name: "Keyboard" }).waitFor();
    expect(await inDialog(page)).toBe(true);
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  });

  test("colours are chosen by a key, and the choice is kept", async () => {
    const page = await dashboard.open("/health", { isFresh: true });
    await heading(page, "Health").waitFor();
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await ground();
    await page.keyboard.press("s");
    await page.keyboard.press("s");
    expect(await ground()).not.toBe(light);
    const dark = await ground();
    await page.reload();
    await heading(page, "Health").waitFor();
    expect(await ground()).toBe(dark);
  });
}

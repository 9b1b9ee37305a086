import { readFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import type { Dashboard } from "../support/dashboard.ts";
import { until } from "../support/until.ts";
import { button, deadJob, heading, queueId, sees, waitingJobs } from "./steps.ts";

interface Finding {
  readonly id: string;
  readonly impact: string | null;
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
}

const grave = new Set(["serious", "critical"]);
const source = readFile(new URL(import.meta.resolve("axe-core/axe.min.js")), "utf8");

/** Serious and critical findings, in words. */
async function findings(page: Page, rules?: readonly string[]): Promise<string[]> {
  await page.evaluate(await source);
  const violations = await page.evaluate(async (only) => {
    const { axe } = window as unknown as {
      axe: { run(options: object): Promise<{ violations: Finding[] }> };
    };
    const limits = only === undefined ? {} : { runOnly: { type: "rule", values: only } };
    return (await axe.run({ resultTypes: ["violations"], ...limits })).violations;
  }, rules);
  return violations
    .filter(({ impact }) => grave.has(impact ?? ""))
    .flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html} ${node.failureSummary}`));
}

/** Everything in light; in dark what colours can break. */
async function expectAccessible(page: Page): Promise<void> {
  expect(await findings(page)).toEqual([]);
  await page.emulateMedia({ colorScheme: "dark" });
  expect(await findings(page, ["color-contrast", "link-in-text-block"])).toEqual([]);
  await page.emulateMedia({ colorScheme: "light" });
}

const titles = {
  "/": "Overview",
  "/jobs": "Jobs",
  "/dead-letters": "Dead letters",
  "/queues": "Queues",
  "/triggers": "Triggers",
  "/breakers": "Breakers",
  "/workers": "Workers and leader",
  "/tenants": "Tenants and keys",
  "/audit": "Audit",
  "/health": "Health",
} as const;

const settled = (page: Page) =>
  until("nothing is loading", async () => (await page.getByText("Loading…").count()) === 0);

export function accessibilitySuite(dashboard: Dashboard) {
  const emptySuite = () => {
    test("empty pages teach what fills them, without a serious finding", async () => {
      const page = await dashboard.open("/");
      await sees(page, "Send the first job");
      for (const [path, text] of [
        ["/", "npx millrace worker --demo"],
        ["/jobs", "No jobs yet"],
        ["/dead-letters", "Nothing waits for review"],
        ["/triggers", "No triggers"],
        ["/workers", "No worker has been seen"],
      ] as const) {
        await page.goto(dashboard.baseUrl + path);
        await sees(page, text);
        expect(await findings(page)).toEqual([]);
      }
    });
  };

  const pagesSuite = () => {
    test.each(Object.entries(titles))(
      "%s has no serious finding, light or dark",
      async (path, title) => {
        const page = await dashboard.open(path);
        await heading(page, title).waitFor();
        await settled(page);
        await expectAccessible(page);
      },
    );

    test("the pages of one thing each have none, nor have dialogs and the sign-in page", async () => {
      const { id, queue } = await deadJob(dashboard, "for all to see");
      const trigger = await dashboard.millrace.triggers.create({
        ...{ type: "TIME", name: "accessible", cron: "0 0 1 1 *" },
        job: defineJob({ type: "t", queue, run() {} }),
      });
      const page = await dashboard.open(`/jobs/${id}`);
      await sees(page, "Last error");
      await expectAccessible(page);
      await button(page, "Reprocess…").click();
      await page.getByRole("dialog").waitFor();
      await expectAccessible(page);
      for (const [path, title] of [
        [`/queues/${await queueId(dashboard, queue)}`, queue],
        [`/triggers/${trigger.id}`, "accessible"],
      ] as const) {
        await page.goto(dashboard.baseUrl + path);
        await heading(page, title).waitFor();
        await settled(page);
        await expectAccessible(page);
      }
      await dashboard.millrace.triggers.delete(trigger.id);
      const unknown = await dashboard.openUnknown("/");
      await unknown.getByLabel("API key").waitFor();
      await expectAccessible(unknown);
    });

    test("nothing is wider than a phone or out of sight, and its menu leads everywhere", async () => {
      await deadJob(
        dashboard,
        "an error that is rather too long for the width of a phone's screen",
      );
      await waitingJobs(dashboard, 2, { type: "a.job.type.with.a.rather.long.name.for.a.phone" });
      const page = await dashboard.open("/", { phone: true });
      for (const title of Object.values(titles)) {
        await button(page, "Menu").click();
        const nav = page.getByRole("navigation", { name: "Pages" });
        await nav.getByRole("link", { name: title }).click();
        await heading(page, title).waitFor();
        await settled(page);
        const wider = await page.evaluate(
          () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
        );
        expect([title, wider]).toEqual([title, 0]);
        const outOfSight = await page.evaluate(() =>
          [...document.querySelectorAll("main button, main td")]
            .filter((one) => one.getBoundingClientRect().right > window.innerWidth)
            .map((one) => one.textContent),
        );
        expect([title, outOfSight]).toEqual([title, []]);
      }
    });
  };
  return { emptySuite, pagesSuite };
}

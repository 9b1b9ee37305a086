import { expect, test } from "vitest";
import type { Dashboard } from "../support/dashboard.ts";
import { newQueue } from "../support/instance.ts";
import { until } from "../support/until.ts";
import { audited, button, confirm, deadJob, queueId, said, sees } from "./steps.ts";

export function deadLettersSuite(dashboard: Dashboard): void {
  const state = async (id: string) => (await dashboard.millrace.get(id))?.state;

  test("are reprocessed one by one, only with a reason", async () => {
    const { id, queue } = await deadJob(dashboard, "the mill stood still", { type: "mill.turn" });
    const page = await dashboard.open(`/dead-letters?queue=${await queueId(dashboard, queue)}`);
    await sees(page, "1 dead letter, pending review");
    await button(page, "Reprocess…").click();
    const act = page.getByRole("dialog").getByRole("button", { name: "Reprocess" });
    await act.waitFor();
    expect(await act.isDisabled()).toBe(true);
    await confirm(page, "Reprocess", { reason: "the mill is mended" });
    await said(page, "mill.turn runs again.");
    await sees(page, "0 dead letters, pending review");
    const made = (await dashboard.millrace.get(id))?.reprocessedAs;
    expect(await state(String(made))).toBe("ready");
    const { entries } = await dashboard.call("GET", `/api/audit?target=${id}`);
    expect(entries.map(({ reason }: { reason: string }) => reason)).toContain("the mill is mended");
  });

  test("are discarded, and shown as such with the reason", async () => {
    const { id, queue } = await deadJob(dashboard, "beyond repair");
    const number = await queueId(dashboard, queue);
    const page = await dashboard.open(`/dead-letters?queue=${number}`);
    await button(page, "Discard…").click();
    await confirm(page, "Discard", { reason: "nobody needs it" });
    await said(page, /is discarded/);
    await page.getByLabel("Status").selectOption("discarded");
    await sees(page, "nobody needs it");
    expect(await state(id)).toBe("discarded");
  });

  test("are grouped by error, and repaired all that match by their number", async () => {
    const queue = newQueue();
    const message = "the sluice is shut";
    const ids = [
      (await deadJob(dashboard, message, { queue })).id,
      (await deadJob(dashboard, message, { queue })).id,
    ];
    const other = await deadJob(dashboard, "something else", { queue });
    const page = await dashboard.open("/dead-letters");
    await page.getByRole("link", { name: message }).click();
    await sees(page, "2 dead letters, pending review");
    expect(new URL(page.url()).searchParams.get("fingerprint")).not.toBeNull();
    await button(page, "Reprocess all 2…").click();
    await confirm(page, /Reprocess 2/, { reason: "it is open again", typed: "2" });
    await said(page, "2 jobs run again.");
    for (const id of ids)
      await until(
        "it is linked",
        async () => (await dashboard.millrace.get(id))?.reprocessedAs != null,
      );
    expect(await state(other.id)).toBe("dead");
  });

  test("whose number has changed meanwhile are left alone", async () => {
    const { queue, id } = await deadJob(dashboard, "one of a kind");
    const page = await dashboard.open(`/dead-letters?queue=${await queueId(dashboard, queue)}`);
    await button(page, "Discard all 1…").click();
    const dialog = page.getByRole("dialog");
    await dialog.locator("textarea").fill("all of them");
    await dialog.getByLabel(/^Type 1/).fill("1");
    await deadJob(dashboard, "one of a kind", { queue });
    await dialog.getByRole("button", { name: /^Discard 1/ }).click();
    await dialog.getByRole("alert").waitFor();
    expect(await state(id)).toBe("dead");
    expect(await audited(dashboard, id, "dlq_discard")).toBeUndefined();
  });
}

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Millrace } from "../../src/index.ts";
import { CommandStage, jsonLines, runHere } from "../support/command-line.ts";
import { die, obeyed, pay } from "../support/dying-jobs.ts";

const stage = new CommandStage("file");
let millrace: Millrace;

beforeAll(async () => {
  millrace = await Millrace.connect({ databaseUrl: stage.url, logLevel: "silent" });
  await millrace.work([pay], { concurrency: 5 });
});
afterAll(() => millrace.stop());

describe("dead letters", () => {
  test("are grouped by error, and listed by conditions", async () => {
    await die(millrace, 2, "acme");
    const { out, err } = await runHere("dlq");
    expect(out).toMatch(/^LETTERS +ERROR +LAST +MESSAGE\n +\d+ +[0-9a-f]{16} /);
    expect(out).not.toMatch(obeyed);
    expect(err).toMatch(/^\d+ dead letters, the oldest for /);
    const [group] = jsonLines((await runHere("dlq", "--json")).out);
    const error = `error=${group?.error_fingerprint}`;
    const letters = await runHere("dlq", error, "tenant=acme", "--json");
    expect(jsonLines(letters.out)).toHaveLength(2);
    expect((await runHere("dlq", "type=nothing")).err).toBe("No dead letter fits.\n");
    const typo = await runHere("dlq", "tipe=pay");
    expect([typo.code, typo.err]).toEqual([2, expect.stringContaining("Did you mean type=…?")]);
    const [letter] = jsonLines(letters.out);
    const shown = await runHere("dlq", "show", String(letter?.dlq_id));
    expect(shown.out).toMatch(/payload\n {2}\{\n {4}"n": \d/);
    expect(shown.out).not.toMatch(obeyed);
  });

  test("are reprocessed one by one, or all that match after their number is confirmed", async () => {
    const [one = ""] = await die(millrace, 1, "solo");
    const single = await runHere("dlq", "reprocess", one, "--reason", "looked into it");
    expect(single.out).toMatch(/^Runs again as [0-9a-f-]{36}\.\n1 dead letter reprocessed\.\n$/);
    expect((await runHere("dlq", "reprocess", one, "--reason", "x")).code).toBe(4);
    await die(millrace, 5, "many");
    const matching = ["dlq", "reprocess", "--matching", "type=pay", "tenant=many"];
    const unasked = await runHere(...matching, "--reason", "fixed");
    expect(unasked.code).toBe(5);
    expect(unasked.err).toContain("5 dead letters would be reprocessed.");
    expect(unasked.err).toContain("--yes");
    const waiting = { tenant: "many", status: "pending_review" as const };
    expect(await millrace.store.service.readsOf(null).deadLetters.count(waiting)).toBe(5);
    const done = await runHere(...matching, "--reason", "fixed", "--yes", "--json");
    expect(jsonLines(done.out)).toHaveLength(5);
    expect(done.err).toBe("5 dead letters reprocessed.\n");
    const entries = await millrace.store.service.audit.list({ tenant: "many" }, null, 20);
    expect(entries.filter(({ reason }) => reason === "fixed").length).toBeGreaterThanOrEqual(5);
  });

  test("are discarded, with a reason", async () => {
    await die(millrace, 2, "gone");
    const discard = ["dlq", "discard", "--matching", "tenant=gone"];
    expect((await runHere(...discard)).err).toContain("discard needs --reason");
    const done = await runHere(...discard, "--reason", "spam", "--yes");
    expect(done.out).toBe("2 dead letters discarded.\n");
    const none = await runHere(...discard, "--reason", "spam", "--yes");
    expect([none.code, none.err]).toEqual([3, expect.stringContaining("None matches.")]);
    const empty = await runHere("dlq", "discard", "--matching", "--reason", "x");
    expect([empty.code, empty.err]).toEqual([2, expect.stringContaining("needs a condition")]);
  });
});

import { afterAll, beforeAll, expect, test } from "vitest";
import { Millrace } from "../../src/index.ts";
import { CommandStage, runHere } from "../support/command-line.ts";
import { until } from "../support/until.ts";

const stage = new CommandStage("file");
let millrace: Millrace;
beforeAll(async () => {
  millrace = await Millrace.connect({ databaseUrl: stage.url, logLevel: "silent" });
});
afterAll(() => millrace.stop());
const breakers = (...args: string[]) => runHere("breakers", ...args);

test("lists, opens, closes and resets, for people and for programs", async () => {
  const none = await breakers();
  expect([none.code, none.out]).toEqual([0, ""]);
  expect(none.err).toContain("There are no breakers yet");
  expect((await breakers("list", "--json")).out).toBe("");

  await millrace.breaker("stripe").run(() => 1);
  const reason = ["--reason", "a maintenance"];
  const opened = await breakers("open", "stripe", ...reason, "--actor", "ann");
  expect([opened.code, opened.out]).toEqual([0, 'The breaker "stripe" is OPEN now.\n']);
  const { out } = await breakers();
  expect(out).toMatch(/^NAME +STATE +FAILURES +NEXT PROBE +SINCE +WHY\n/);
  expect(out).toMatch(/stripe +OPEN +0\/5 +when closed +\S+ +a maintenance/);
  await millrace.breaker("paypal").run(() => 1);
  const lines = (await breakers("--json")).out.trim().split("\n");
  const listed = lines.map((line) => JSON.parse(line));
  expect(listed.map(({ name }) => name).sort()).toEqual(["paypal", "stripe"]);
  const stripe = listed.find(({ name }) => name === "stripe");
  expect(stripe).toMatchObject({ state: "OPEN", cause: "manual", failure_threshold: 5 });
  expect(Object.keys(stripe).filter((name) => /[A-Z]/.test(name))).toEqual([]);
  const closed = await breakers("close", "stripe", ...reason, "--json");
  expect(JSON.parse(closed.out)).toMatchObject({ state: "CLOSED", openings: 1 });
  const reset = await breakers("reset", "stripe", ...reason, "--json");
  expect(JSON.parse(reset.out)).toMatchObject({ state: "CLOSED", openings: 0 });
});

test("a closed breaker gives no reason for being open", async () => {
  const call = () => {
    throw new Error("The bank does not answer.");
  };
  await expect(millrace.breaker("bank").run(call)).rejects.toThrow("does not answer");
  await until("the failure is known", async () => {
    return (await millrace.breakers.get("bank"))?.lastError !== null;
  });
  expect((await breakers()).out).toMatch(/^bank +CLOSED +1\/5 +- +\S+Z$/m);
  await breakers("close", "bank", "--reason", "they called");
  expect((await breakers()).out).toMatch(/^bank +CLOSED +\d\/5 +- +\S+Z +they called$/m);
});

test("says what is wrong with what it was asked", async () => {
  const usage: [string[], string][] = [
    [["open", "stripe"], "open needs --reason."],
    [["open", "stripe", "--reason", " "], "--reason needs a value."],
    [["close", "--reason", "x"], "Which breaker shall I close?"],
    [["opne", "stripe"], 'breakers cannot "opne". Did you mean "open"?'],
    [["open", "a", "b", "--reason", "x"], "One breaker at a time."],
    [["list", "stripe"], '"list" takes no name.'],
    [["--reasn", "x"], 'There is no option "--reasn". Did you mean "--reason"?'],
  ];
  for (const [args, said] of usage) {
    const { code, err } = await breakers(...args);
    expect([code, err]).toEqual([2, `${said} See: npx millrace breakers --help\n`]);
  }
  const unknown = await breakers("open", "stripee", "--reason", "x");
  expect(unknown.code).toBe(3);
  expect(unknown.err).toContain('There is no breaker "stripee".');
  expect(unknown.err).toContain("BREAKER_NOT_FOUND");
  const { code, out } = await breakers("--help");
  expect([code, out.includes("Usage: millrace breakers")]).toEqual([0, true]);
});

test("other commands still refuse words they do not know", async () => {
  const { code, err } = await runHere("migrate", "now");
  expect(code).toBe(2);
  expect(err).toContain("Unexpected argument 'now'");
});

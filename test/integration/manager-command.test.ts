import { expect, test } from "vitest";
import { type CommandLine, CommandStage, jsonLines } from "../support/command-line.ts";
import { Exposition } from "../support/exposition.ts";
import { until } from "../support/until.ts";

interface Line {
  readonly manager: string;
  readonly state: "waiting" | "leader";
  readonly term?: number;
  readonly metrics?: string;
  readonly reason?: string;
  readonly services?: readonly { name: string }[];
}

const stage = new CommandStage("test");
const start = (...args: string[]) => stage.start(["manager", ...args]);
const linesOf = ({ out }: CommandLine) => jsonLines(out) as unknown as Line[];
const leads = (one: CommandLine) =>
  until("it leads", () => linesOf(one).find(({ state }) => state === "leader"));

test("runs until it is stopped, leads, and leaves the office to the next one", async () => {
  const first = start("--json");
  const { term = 0, manager } = await leads(first);
  const second = start("--json");
  await second.said("waiting");
  const ended = await first.stop("SIGTERM");
  expect(ended.code).toBe(0);
  expect(linesOf(first).at(-1)).toMatchObject({ manager, term, reason: "resigned" });
  expect(
    linesOf(first)
      .at(-1)
      ?.services?.map(({ name }) => name),
  ).toContain("scheduler");
  expect((await leads(second)).term).toBeGreaterThan(term);
  expect((await second.stop()).code).toBe(0);
});

test("says in words what it does, and stops by itself after a while", async () => {
  const { code, out, err } = await start("--for", "5").ended();
  expect([code, err]).toEqual([0, ""]);
  expect(out).toMatch(/^Manager of postgres/);
  expect(out).toContain("Leader for term 1.");
  expect(out).toContain("No longer leader: term 1 is over (resigned).");
});

test("refuses an election it does not know", async () => {
  const { code, err } = await stage.run(["manager", "--election", "dice"]);
  expect(code).toBe(1);
  expect(err).toContain("election must be one of postgres, redis");
});

test("serves its metrics on a port of their own", async () => {
  const manager = start("--json", "--metrics-port", "0");
  await leads(manager);
  const { metrics = "" } = linesOf(manager)[0] ?? {};
  const read = await until("the metrics say that it leads", async () => {
    const seen = new Exposition(await (await fetch(metrics)).text());
    return seen.value("millrace_leader") === 1 && seen;
  });
  expect(read.value("millrace_leader_elections_total")).toBe(1);
  expect((await manager.stop()).code).toBe(0);
});

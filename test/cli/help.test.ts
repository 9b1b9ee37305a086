import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { commands } from "../../src/cli/commands.ts";
import { exitCodes } from "../../src/cli/exit-codes.ts";
import { runCommand, runHere } from "../support/command-line.ts";

const run = promisify(execFile);
const page = join(import.meta.dirname, "..", "..", "docs", "guides", "command-line.md");

/** They change something, or speak to a person only. */
const withoutJson = new Set(["completion", "bench", "migrate", "keys revoke"]);

test.each(commands)("$name teaches by example and leaves no option out", async (command) => {
  const { code, out } = await runHere(...command.name.split(" "), "--help");
  expect(code).toBe(0);
  expect(out).toMatch(new RegExp(`^millrace ${command.name} – \\S`));
  expect(out).toContain(`\nUsage: millrace ${command.name}`);
  expect(out).toMatch(/\nExamples:\n {2}\S/);
  const options = Object.keys(command.options);
  for (const option of [...options, "help"]) expect(out).toContain(`--${option}`);
  expect(options.includes("json") || withoutJson.has(command.name)).toBe(true);
  const examples = out.split("\nExamples:\n")[1] ?? "";
  expect(examples).toMatch(/(?:^|\s|\()npx millrace /);
  expect(examples).not.toMatch(/(?<!npx )(?<![\w./])millrace (?=[a-z-])/);
  const longest = Math.max(...out.split("\n").map((line) => line.length));
  expect(longest).toBeLessThanOrEqual(105);
});

const helpFor = (words: string[]) => runHere(...words);

test("what is said to be run can be copied: npx finds it, the shell alone does not", async () => {
  const folder = join(import.meta.dirname, "..", "..", "src", "cli");
  const files = await readdir(folder);
  expect(files.length).toBeGreaterThan(40);
  for (const file of files) {
    const text = await readFile(join(folder, file), "utf8");
    const hints = text.split("\n").filter((line) => /(?<!Usage): millrace [a-z]/.test(line));
    expect(hints, file).toEqual([]);
  }
});

test("alone, millrace shows its help, and was called wrongly all the same", async () => {
  const { code, out, err } = await runHere();
  expect({ code, err }).toEqual({ code: 2, err: "" });
  expect(out).toBe((await runHere("--help")).out);
});

test.each([
  ["keys", ["create", "list", "revoke"]],
  ["audit", ["verify"]],
])("a word that is no command by itself shows what it begins: %s", async (word, seconds) => {
  const asked = await Promise.all(
    [
      [word, "--help"],
      [word, "-h"],
      ["help", word],
    ].map(helpFor),
  );
  for (const { code, out, err } of asked) {
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toMatch(new RegExp(`^millrace ${word} – \\S`));
    for (const second of seconds) expect(out).toMatch(new RegExp(`^  ${word} ${second} +\\S`, "m"));
  }
  const alone = await runHere(word);
  expect([alone.code, alone.out]).toEqual([2, ""]);
  expect(alone.err).toBe(`${word} what? ${seconds.join(", ")}. See: npx millrace ${word} --help\n`);
  const wrong = await runHere(word, "nothing");
  expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining("There is no command")]);
});

test("the guide names every command and every exit code", async () => {
  const text = await readFile(page, "utf8");
  for (const { name } of commands) {
    const [first = "", second = ""] = name.split(" ");
    expect(text).toMatch(new RegExp(`\`${first}[^\`]*${second}[^\`]*\``));
  }
  for (const code of Object.values(exitCodes))
    expect(text).toMatch(new RegExp(`^\\| ${code} `, "m"));
});

test("completion for bash knows commands, their second words, options and files", async () => {
  const { out } = await runHere("completion", "bash");
  const ask = async (...words: string[]) => {
    const script = `${out}\nCOMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _millrace; printf '%s ' "\${COMPREPLY[@]}"`;
    return (await run("bash", ["-c", script, "bash", "millrace", ...words])).stdout.trim();
  };
  expect(await ask("do")).toBe("doctor");
  expect((await ask("jobs", "")).split(" ")).toEqual(["show", "tail", "cancel", "retry"]);
  expect(await ask("jobs", "show", "--p")).toBe("--payload");
  expect(await ask("jobs", "--sta")).toBe("--state");
  expect(await ask("breakers", "re")).toBe("reset");
  expect(await ask("dlq", "reprocess", "--m")).toBe("--matching");
  expect(await ask("worker", page.slice(0, -1))).toBe(page);
});

test("completion for zsh and fish is made of the same words", async () => {
  const zsh = (await runHere("completion", "zsh")).out;
  expect(zsh).toMatch(/^#compdef millrace\n/);
  const fish = (await runHere("completion", "fish")).out;
  for (const { name, options } of commands) {
    expect(zsh).toContain(`"${name}"`);
    expect(fish).toMatch(
      new RegExp(`^complete -c millrace .*-a ${name.split(" ").at(-1)}\\b`, "m"),
    );
    for (const option of Object.keys(options)) {
      expect(zsh).toContain(`--${option}`);
      expect(fish).toContain(` -l ${option}`);
    }
  }
  expect((await runHere("completion", "tcsh")).err).toContain("bash, zsh, fish");
});

test("a reader that leaves early is no failure, and no database is made for who only looks", async () => {
  const { stdout } = await run("bash", [
    ...["-c", `set -o pipefail; "$0" "$1" help | head -1`, process.execPath],
    join(import.meta.dirname, "..", "..", "dist", "cli", "main.js"),
  ]);
  expect(stdout).toMatch(/^millrace – /);
  const none = await runCommand(["jobs", "--data-dir", "/nowhere"]);
  expect([none.code, none.out]).toEqual([3, ""]);
  expect(none.err).toContain("There is no database: DATABASE_URL is not set");
  expect(none.err).toContain("npx millrace dev");
});

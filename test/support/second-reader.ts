// Prometheus' text format as a parser reads it that is not ours, held against our own strict reader.

import parse from "parse-prometheus-text-format";
import { expect } from "vitest";
import { Exposition } from "./exposition.ts";

const byText = (one: string, other: string) => (one < other ? -1 : 1);

const line = (name: string, labels: Readonly<Record<string, string>>, value: number) =>
  JSON.stringify([name, Object.entries(labels).sort(([a], [b]) => byText(a, b)), String(value)]);

const toNumber = (text = "") => Number(text.replace("Inf", "Infinity"));

const unescaped = (help: string) =>
  help.replace(/\\(.)/g, (_, letter) => (letter === "n" ? "\n" : letter));

/** The parser puts all series of a histogram into one; without their types it reads line by line. */
const withoutTypes = (text: string) => text.replace(/^#.*\n/gm, "");

/** Everything the one reader finds, the other finds too: families, series with labels, values. */
export function expectBothReadersToAgree(text: string): void {
  const own = [...new Exposition(text).families.values()];
  const families = own.map(({ name, help, type }) => ({ name, help: unescaped(help), type }));
  const found = parse(text).map(({ name, help, type }) => ({
    ...{ name, help, type: type.toLowerCase() },
  }));
  expect(found).toEqual(families);
  const samples = own.flatMap((family) => family.samples);
  const lines = samples.map(({ name, labels, value }) => line(name, labels, value));
  const foundLines = parse(withoutTypes(text)).flatMap(({ name, metrics }) =>
    metrics.map(({ labels = {}, value }) => line(name, labels, toNumber(value))),
  );
  expect(foundLines.sort(byText)).toEqual(lines.sort(byText));
}

import { expect, test } from "vitest";
import { Events } from "../../src/runtime/events.ts";
import { countEvents } from "../../src/runtime/metric-events.ts";
import { MetricsRegistry } from "../../src/runtime/metrics.ts";
import { Exposition } from "../support/exposition.ts";
import { expectBothReadersToAgree } from "../support/second-reader.ts";

test("label values come back as they went in, whatever they hold", () => {
  const registry = new MetricsRegistry();
  const counter = registry.counter("odd_total", 'back\\slash, "quotes" and\na line', ["name"]);
  const odd = ['say "hi"', "back\\slash", "two\nlines", "{a=1,b}", "ünïcödé 🎉", "", "\\n"];
  for (const [i, name] of odd.entries()) counter.add([name], i + 1);
  const read = new Exposition(registry.text());
  for (const [i, name] of odd.entries()) expect(read.value("odd_total", { name })).toBe(i + 1);
  expectBothReadersToAgree(registry.text());
});

test("a metric has a bounded number of series; the rest is counted as other", () => {
  const registry = new MetricsRegistry();
  const counter = registry.counter("many_total", "Many.", ["a", "b"]);
  for (let i = 0; i < 5_000; i++) counter.add([String(i), "b"]);
  const read = new Exposition(registry.text());
  expect(read.families.get("many_total")?.samples).toHaveLength(1_001);
  expect(read.value("many_total")).toBe(5_000);
  expect(read.value("many_total", { a: "other", b: "other" })).toBe(4_000);
});

test("a histogram counts what is at most its bound, and everything in +Inf", () => {
  const registry = new MetricsRegistry();
  const histogram = registry.histogram("took_seconds", "How long.", ["queue"]);
  for (const seconds of [0, 0.001, 0.0011, 5, 601, 1e9]) histogram.observe(["q"], seconds);
  const read = new Exposition(registry.text());
  expect(read.value("took_seconds_count")).toBe(6);
  const { samples = [] } = read.families.get("took_seconds") ?? {};
  const bucket = (le: string) =>
    samples.find(({ name, labels }) => name === "took_seconds_bucket" && labels.le === le)?.value;
  expect(bucket("0.001")).toBe(2);
  expect(bucket("5")).toBe(4);
  expect(bucket("600")).toBe(4);
  expect(bucket("+Inf")).toBe(6);
  histogram.observe(["other"], 3);
  expectBothReadersToAgree(registry.text());
});

test("a name is given once, and a counter says that it is one", () => {
  const registry = new MetricsRegistry();
  registry.gauge("depth", "Depth.");
  expect(() => registry.gauge("depth", "Again.")).toThrow("already");
  expect(() => registry.counter("depths", "No.")).toThrow("_total");
});

test("nobody is listened to before somebody counts, nor afterwards", () => {
  const events = new Events();
  const names = ["enqueue.accepted", "job.started", "job.settled", "enqueue.refused"] as const;
  const wanted = () => names.filter((name) => events.wants(name));
  expect(wanted()).toEqual([]);
  const end = countEvents(events, new MetricsRegistry(), () => ["", "q"]);
  expect(wanted()).toEqual(names);
  end();
  expect(wanted()).toEqual([]);
});

test.each([
  ["no newline at the end", "# HELP a A.\n# TYPE a gauge\na 1"],
  ["a sample without a type", "a 1\n"],
  ["a type twice", "# HELP a A.\n# TYPE a gauge\na 1\n# HELP a A.\n# TYPE a gauge\na 2\n"],
  ["the same series twice", '# HELP a A.\n# TYPE a gauge\na{x="1"} 1\na{x="1"} 2\n'],
  ["a counter without _total", "# HELP a A.\n# TYPE a counter\na 1\n"],
  ["a counter below zero", "# HELP a_total A.\n# TYPE a_total counter\na_total -1\n"],
  ["a gauge with _total", "# HELP a_total A.\n# TYPE a_total gauge\na_total 1\n"],
  ["no help", "# TYPE a gauge\na 1\n"],
  ["an unknown escape", '# HELP a A.\n# TYPE a gauge\na{x="\\t"} 1\n'],
  ["milliseconds", "# HELP a_ms A.\n# TYPE a_ms gauge\na_ms 1\n"],
  [
    "a histogram without +Inf",
    '# HELP a A.\n# TYPE a histogram\na_bucket{le="1"} 1\na_sum 1\na_count 1\n',
  ],
  [
    "buckets that do not add up",
    '# HELP a A.\n# TYPE a histogram\na_bucket{le="1"} 2\na_bucket{le="+Inf"} 1\na_sum 1\na_count 1\n',
  ],
  [
    "a count that differs",
    '# HELP a A.\n# TYPE a histogram\na_bucket{le="+Inf"} 1\na_sum 1\na_count 2\n',
  ],
])("the checker itself refuses %s", (_, text) => {
  expect(() => new Exposition(text)).toThrow();
});

// Reads Prometheus' text format as strictly as `promtool check metrics` does: whatever breaks a rule of
// the format or of its naming is an error. It shares no code with what writes it.

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly samples: Sample[];
}

export class Exposition {
  readonly families: ReadonlyMap<string, Family>;

  constructor(text: string) {
    this.families = read(text);
    for (const family of this.families.values()) check(family);
  }

  get names(): string[] {
    return [...this.families.keys()].sort();
  }

  /** The sum of all samples with these labels; undefined: there is none. */
  value(name: string, labels: Readonly<Record<string, string>> = {}): number | undefined {
    const base = name.replace(/_(?:count|sum)$/, "");
    const family = this.families.get(name) ?? this.families.get(base);
    const found = (family?.samples ?? []).filter(
      (sample) =>
        sample.name === name &&
        Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
    );
    return found.length === 0 ? undefined : found.reduce((sum, { value }) => sum + value, 0);
  }

  /** Everything about one metric, to tell whether it has moved. */
  fingerprint(name: string): string {
    const samples = this.families.get(name)?.samples ?? [];
    return JSON.stringify(samples.map(({ name: own, labels, value }) => [own, labels, value]));
  }
}

class Malformed extends Error {
  constructor(line: string, why: string) {
    super(`${why}: ${JSON.stringify(line)}`);
  }
}

const nameShape = /^[a-z][a-z0-9_]*$/;
const number = /^(?:[+-]?Inf|NaN|[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)$/;

function read(text: string): Map<string, Family> {
  if (!text.endsWith("\n")) throw new Malformed(text.slice(-80), "the last line does not end");
  const families = new Map<string, Family>();
  const series = new Set<string>();
  let help: { name: string; text: string } | null = null;
  let open: Family | null = null;
  for (const line of text.slice(0, -1).split("\n")) {
    const comment = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line);
    if (comment !== null) {
      const [, kind, name = "", rest = ""] = comment;
      if (families.has(name)) throw new Malformed(line, "said twice, or not in one group");
      if (!nameShape.test(name)) throw new Malformed(line, "not a name");
      if (kind === "HELP") {
        if (help !== null) throw new Malformed(line, "HELP without TYPE before it");
        if (!/^(?:[^\\]|\\[\\n])+$/.test(rest)) throw new Malformed(line, "not a help text");
        help = { name, text: rest };
        continue;
      }
      if (help?.name !== name) throw new Malformed(line, "TYPE without its HELP");
      if (rest !== "counter" && rest !== "gauge" && rest !== "histogram")
        throw new Malformed(line, "not a type");
      if (open !== null && open.samples.length === 0)
        throw new Malformed(line, "no samples before");
      open = { name, help: help.text, type: rest, samples: [] };
      families.set(name, open);
      help = null;
      continue;
    }
    if (help !== null || open === null) throw new Malformed(line, "a sample without a TYPE");
    const sample = readSample(line);
    if (!belongs(open, sample.name)) throw new Malformed(line, `not of ${open.name}`);
    const sorted = Object.entries(sample.labels).sort(([a], [b]) => (a < b ? -1 : 1));
    const id = JSON.stringify([sample.name, sorted]);
    if (series.has(id)) throw new Malformed(line, "the same series twice");
    series.add(id);
    open.samples.push(sample);
  }
  if (help !== null) throw new Malformed(help.name, "HELP without TYPE");
  return families;
}

const belongs = ({ name, type }: Family, sample: string): boolean =>
  type === "histogram"
    ? ["_bucket", "_sum", "_count"].some((suffix) => sample === name + suffix)
    : sample === name;

/** One sample per line, no timestamp. Values may hold anything, so they are read letter by letter. */
function readSample(line: string): Sample {
  const name = /^[a-zA-Z_:][a-zA-Z0-9_:]*/.exec(line)?.[0] ?? "";
  if (!nameShape.test(name)) throw new Malformed(line, "not a name");
  const labels: Record<string, string> = {};
  let at = name.length;
  if (line[at] === "{") {
    at++;
    while (line[at] !== "}") {
      const label = /^([a-z][a-z0-9_]*)="/.exec(line.slice(at));
      if (label === null) throw new Malformed(line, "not a label");
      at += label[0].length;
      let value = "";
      for (; line[at] !== '"'; at++) {
        if (at >= line.length) throw new Malformed(line, "a value that does not end");
        if (line[at] !== "\\") value += line[at];
        else value += escaped(line, ++at);
      }
      at++;
      const key = label[1] ?? "";
      if (key in labels || key.startsWith("__")) throw new Malformed(line, "a label twice");
      labels[key] = value;
      if (line[at] === ",") at++;
      else if (line[at] !== "}") throw new Malformed(line, "something behind a label");
    }
    at++;
  }
  const rest = line.slice(at);
  if (rest[0] !== " " || !number.test(rest.slice(1))) throw new Malformed(line, "not one number");
  return { name, labels, value: Number(rest.slice(1).replace("Inf", "Infinity")) };
}

function escaped(line: string, at: number): string {
  const letter = line[at];
  if (letter === "n") return "\n";
  if (letter === "\\" || letter === '"') return letter;
  throw new Malformed(line, "an unknown escape");
}

function check(family: Family): void {
  const { name, type, samples } = family;
  const is = (holds: boolean, why: string) => {
    if (!holds) throw new Malformed(name, why);
  };
  is(samples.length > 0, "no samples");
  is((type === "counter") === name.endsWith("_total"), "counters end in _total, and only they");
  is(type !== "gauge" || !/_(?:count|sum|bucket)$/.test(name), "a gauge named like a histogram");
  is(!/_(?:ms|milliseconds|minutes|hours|kb|mb)(?:_|$)/.test(name), "not a base unit");
  if (type === "counter")
    for (const { value } of samples) is(value >= 0 && Number.isFinite(value), "a negative counter");
  if (type === "histogram") checkHistogram(family, is);
}

function checkHistogram(
  { name, samples }: Family,
  is: (holds: boolean, why: string) => void,
): void {
  const groups = new Map<string, Sample[]>();
  for (const sample of samples) {
    const { le, ...rest } = sample.labels;
    is((le !== undefined) === sample.name.endsWith("_bucket"), "le belongs to buckets");
    const key = JSON.stringify(rest);
    groups.set(key, [...(groups.get(key) ?? []), sample]);
  }
  for (const group of groups.values()) {
    const buckets = group.filter((sample) => sample.name === `${name}_bucket`);
    const bounds = buckets.map(({ labels }) => Number(labels.le?.replace("+Inf", "Infinity")));
    is(bounds.at(-1) === Number.POSITIVE_INFINITY, "the last bucket is +Inf");
    is(
      bounds.every((bound, i) => i === 0 || bound > (bounds[i - 1] ?? bound)),
      "bounds ascend",
    );
    const counts = buckets.map(({ value }) => value);
    is(
      counts.every((count, i) => i === 0 || count >= (counts[i - 1] ?? 0)),
      "buckets add up",
    );
    const count = group.filter((sample) => sample.name === `${name}_count`);
    is(count.length === 1 && count[0]?.value === counts.at(-1), "_count is the last bucket");
    is(group.filter((sample) => sample.name === `${name}_sum`).length === 1, "one _sum");
  }
}

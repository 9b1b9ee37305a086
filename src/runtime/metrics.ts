// Counters, gauges and histograms, written in Prometheus' text format. How many series one metric may
// have is bounded: what comes beyond that is counted under the label value "other".

type Labels = readonly string[];

const mostSeries = 1_000;
const separator = "\u0000";

/** From a millisecond to ten minutes. */
const secondsBuckets: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600,
];

abstract class Metric<Series> {
  readonly name: string;
  readonly help: string;
  readonly labels: Labels;
  abstract readonly type: "counter" | "gauge" | "histogram";
  readonly #series = new Map<string, { readonly values: Labels; readonly series: Series }>();

  constructor(name: string, help: string, labels: Labels) {
    this.name = name;
    this.help = help;
    this.labels = labels;
  }

  protected abstract create(): Series;
  protected abstract write(series: Series, values: Labels): string;

  protected of(values: Labels): Series {
    const key = values.join(separator);
    const known = this.#series.get(key);
    if (known !== undefined) return known.series;
    const other = this.labels.map(() => "other");
    if (this.#series.size >= mostSeries && key !== other.join(separator)) return this.of(other);
    const series = this.create();
    this.#series.set(key, { values, series });
    return series;
  }

  protected forgetAll(): void {
    this.#series.clear();
  }

  /** Empty when nothing has been counted yet. */
  text(): string {
    if (this.#series.size === 0) return "";
    let text = `# HELP ${this.name} ${escapeHelp(this.help)}\n# TYPE ${this.name} ${this.type}\n`;
    for (const { values, series } of this.#series.values()) text += this.write(series, values);
    return text;
  }

  protected line(suffix: string, values: Labels, value: number, le?: string): string {
    const pairs = this.labels.map((label, i) => `${label}="${escapeValue(values[i] ?? "")}"`);
    if (le !== undefined) pairs.push(`le="${le}"`);
    const labels = pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
    return `${this.name}${suffix}${labels} ${numberText(value)}\n`;
  }
}

export class Counter extends Metric<{ value: number }> {
  readonly type = "counter";

  constructor(name: string, help: string, labels: Labels) {
    super(name, help, labels);
    if (!name.endsWith("_total")) throw new TypeError(`the counter ${name} must end in _total`);
    if (labels.length === 0) this.add([], 0);
  }

  add(values: Labels, by = 1): void {
    this.of(values).value += by;
  }

  protected create() {
    return { value: 0 };
  }

  protected write({ value }: { value: number }, values: Labels): string {
    return this.line("", values, value);
  }
}

export class Gauge extends Metric<{ value: number }> {
  readonly type = "gauge";

  set(values: Labels, value: number): void {
    this.of(values).value = value;
  }

  /** These series and no others. */
  replace(all: Iterable<readonly [Labels, number]>): void {
    this.forgetAll();
    for (const [values, value] of all) this.set(values, value);
  }

  protected create() {
    return { value: 0 };
  }

  protected write({ value }: { value: number }, values: Labels): string {
    return this.line("", values, value);
  }
}

interface Buckets {
  readonly counts: number[];
  sum: number;
  count: number;
}

export class Histogram extends Metric<Buckets> {
  readonly type = "histogram";
  readonly #bounds: readonly number[];

  constructor(name: string, help: string, labels: Labels, bounds = secondsBuckets) {
    super(name, help, labels);
    this.#bounds = bounds;
    if (labels.length === 0) this.of([]);
  }

  observe(values: Labels, value: number): void {
    const buckets = this.of(values);
    const at = this.#bounds.findIndex((bound) => value <= bound);
    if (at >= 0) buckets.counts[at] = (buckets.counts[at] ?? 0) + 1;
    buckets.sum += value;
    buckets.count++;
  }

  protected create(): Buckets {
    return { counts: this.#bounds.map(() => 0), sum: 0, count: 0 };
  }

  protected write({ counts, sum, count }: Buckets, values: Labels): string {
    let text = "";
    let below = 0;
    for (const [i, bound] of this.#bounds.entries()) {
      below += counts[i] ?? 0;
      text += this.line("_bucket", values, below, numberText(bound));
    }
    text += this.line("_bucket", values, count, "+Inf");
    return text + this.line("_sum", values, sum) + this.line("_count", values, count);
  }
}

export class MetricsRegistry {
  readonly #metrics = new Map<string, Counter | Gauge | Histogram>();

  counter(name: string, help: string, labels: Labels = []): Counter {
    return this.#add(new Counter(name, help, labels));
  }

  gauge(name: string, help: string, labels: Labels = []): Gauge {
    return this.#add(new Gauge(name, help, labels));
  }

  /** In seconds. */
  histogram(name: string, help: string, labels: Labels = []): Histogram {
    return this.#add(new Histogram(name, help, labels));
  }

  text(): string {
    let text = "";
    for (const metric of this.#metrics.values()) text += metric.text();
    return text;
  }

  #add<M extends Counter | Gauge | Histogram>(metric: M): M {
    if (this.#metrics.has(metric.name)) throw new TypeError(`there is a ${metric.name} already`);
    this.#metrics.set(metric.name, metric);
    return metric;
  }
}

const escapeHelp = (text: string) => text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");

const escapeValue = (text: string) => escapeHelp(text).replaceAll('"', '\\"');

function numberText(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (Number.isFinite(value)) return String(value);
  return value > 0 ? "+Inf" : "-Inf";
}

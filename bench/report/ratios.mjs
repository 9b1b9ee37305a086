// The claims we make about the numbers, each computed from one run.
import { median } from "../rounds.mjs";

const of = (rows, scenario, system, config = () => true) =>
  rows.filter((row) => row.scenario === scenario && row.system === system && config(row.config));

const best = (rows, key = "jobs_per_second") => {
  const values = rows.map((row) => row[key]).filter((value) => value !== null);
  return values.length > 0 ? Math.max(...values) : null;
};

const lowest = (rows, key) => {
  const values = rows.map((row) => row[key]).filter((value) => value !== null);
  return values.length > 0 ? Math.min(...values) : null;
};

const peers = ["bullmq-redis", "bullmq-postgres", "graphile-worker", "pg-boss"];

function claim(what, numerator, denominator, limit, atMost = false) {
  if (numerator === null || denominator === null) return [];
  const ratio = numerator / denominator;
  const wanted = `${atMost ? "at most" : "at least"} ${limit}`;
  return [{ what, ratio, wanted, met: atMost ? ratio <= limit : ratio >= limit }];
}

function throughput(rows) {
  const single = best(of(rows, "end_to_end_single", "millrace"));
  const bulk = best(of(rows, "end_to_end_bulk", "millrace"));
  const bestPeer = best(
    rows.filter((row) => row.scenario === "end_to_end_bulk" && peers.includes(row.system)),
  );
  const beside = (peer, limit) =>
    claim(
      `end_to_end_single: rate beside ${peer}, its best`,
      single,
      best(of(rows, "end_to_end_single", peer)),
      limit,
    );
  return [
    ...beside("bullmq-redis", 4),
    ...beside("bullmq-postgres", 20),
    ...beside("graphile-worker", 20),
    ...beside("pg-boss", 20),
    ...claim(
      "end_to_end_single: rate beside raw",
      single,
      best(of(rows, "end_to_end_single", "raw")),
      0.6,
    ),
    ...claim("end_to_end_bulk: rate beside the best peer", bulk, bestPeer, 2),
    ...claim(
      "end_to_end_bulk: rate beside raw",
      bulk,
      best(of(rows, "end_to_end_bulk", "raw")),
      0.6,
    ),
  ];
}

function pickup(rows) {
  const p50 = (system, place) =>
    lowest(
      of(rows, "pickup_idle", system, (config) => config.startsWith(place)),
      "pickup_p50_ms",
    );
  const beside = (place, limit) =>
    claim(
      `pickup_idle, ${place}: p50 beside bullmq-redis`,
      p50("millrace", place),
      p50("bullmq-redis", place),
      limit,
      true,
    );
  return [...beside("across connections", 1.3), ...beside("same process", 1)];
}

// A machine that is slow for some seconds is so for both of a pair: each has its own ratio, of which the median counts.
function ratioOfPairs(over, under, key) {
  const ratios = over.samples.map((sample, i) => sample[key] / under.samples[i]?.[key]);
  return median(ratios.filter(Number.isFinite));
}

// By rate, and by server CPU per job (turned over, so that more is better in both).
function pair(rows, what, [hardScenario, hard], [easyScenario, easy], limit) {
  const [a] = of(rows, hardScenario, "millrace", hard);
  const [b] = of(rows, easyScenario, "millrace", easy);
  if (!a || !b) return [];
  return [
    ...claim(`${what}: rate`, ratioOfPairs(a, b, "jobs_per_second"), 1, limit),
    ...claim(
      `${what}: jobs per server CPU second`,
      ratioOfPairs(b, a, "server_cpu_s_per_100k"),
      1,
      limit,
    ),
  ];
}

function pairs(rows) {
  const any = () => true;
  const starts = (text) => (config) => config.startsWith(text);
  const within = (what, scenario, hard, easy, limit) =>
    pair(rows, what, [scenario, starts(hard)], [scenario, starts(easy)], limit);
  return [
    ...pair(rows, "backlog_1m beside backlog_10k", ["backlog_1m", any], ["backlog_10k", any], 0.9),
    ...within("after_2m_processed beside fresh", "after_2m_processed", "after", "fresh", 0.9),
    ...within("old_snapshot_held beside free", "old_snapshot_held", "snapshot", "free", 0.5),
    ...within("payload_1kb beside 100 bytes", "payload_1kb", "1 KB", "100", 0.6),
  ];
}

// Below the number of workers from which it is less, nothing is promised.
function dispatch(rows) {
  const cpu = (way, workers) =>
    of(rows, "brokered", "millrace", (config) => config === `${way}, ${workers}`)[0]
      ?.server_cpu_s_per_100k ?? null;
  const counts = of(rows, "brokered", "millrace", (config) => config.startsWith("brokered, "))
    .map(({ config }) => config.slice("brokered, ".length))
    .filter((workers) => cpu("brokered", workers) !== null && cpu("direct", workers) !== null);
  const ratios = counts.map((workers) => cpu("brokered", workers) / cpu("direct", workers));
  const from = ratios.findLastIndex((ratio) => ratio >= 1) + 1;
  const met = (index) => (index >= from ? true : from < counts.length ? null : false);
  return counts.map((workers, index) => ({
    what: `brokered, ${workers}: PostgreSQL CPU beside direct`,
    ratio: ratios[index],
    wanted: "below 1 from some number of workers on",
    met: met(index),
  }));
}

function outage(rows) {
  const [quiet] = of(rows, "redis_outage", "millrace", (config) => config === "quiet");
  if (!quiet?.enqueue_p99_ms) return [];
  return of(rows, "redis_outage", "millrace", (config) => config !== "quiet")
    .filter((row) => row.enqueue_p99_ms)
    .map(({ config, enqueue_p99_ms }) => {
      const apart = enqueue_p99_ms - quiet.enqueue_p99_ms;
      return {
        what: `redis_outage, ${config}: enqueue p99 minus quiet p99`,
        ratio: apart,
        unit: " ms",
        wanted: "at most 250 ms",
        met: apart <= 250,
      };
    });
}

// Each feature beside the same jobs without it.
const without = { fairness: "tenants", ageing: "priorities" };
const isFeature = (config) => !["plain", ...Object.values(without)].includes(config);

function features(rows) {
  const rate = (config) =>
    of(rows, "flow_control", "millrace", (one) => one === config)[0]?.jobs_per_second ?? null;
  return of(rows, "flow_control", "millrace", isFeature).flatMap(({ config, jobs_per_second }) => {
    const off = without[config] ?? "plain";
    return claim(`flow_control, ${config}: rate beside ${off}`, jobs_per_second, rate(off), 0.6);
  });
}

export const ratiosOf = (rows) => [
  ...throughput(rows),
  ...pickup(rows),
  ...pairs(rows),
  ...dispatch(rows),
  ...outage(rows),
  ...features(rows),
];

import { fileURLToPath } from "node:url";

// Runs a scenario's entries round by round, so that what disturbs the machine disturbs everybody alike, and
// reduces the rounds to medians.
const here = fileURLToPath(new URL("..", import.meta.url)); // results name no place on this machine

export function median(values) {
  const sorted = values
    .filter((value) => value !== null && value !== undefined)
    .sort((a, b) => a - b);
  if (sorted.length === 0) return null;
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

export function quantile(values, q) {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(q * sorted.length) - 1)];
}

const round = (value, digits) =>
  value === null || value === undefined ? null : Number(value.toFixed(digits));

// A shared machine is quick for some seconds and slow for others: what is compared across systems gets more rounds.
export const manyRounds = ({ rounds, tiny, leadingOnly }) =>
  tiny || leadingOnly ? rounds : Math.max(5, rounds);

// entries: { scenario, system, config, measure() → sample }
export async function interleave(context, entries, rounds) {
  const samples = entries.map(() => []);
  const failures = entries.map(() => null);
  context.progress.expect(entries.length * rounds);
  for (let number = 0; number < rounds; number++) {
    for (let place = 0; place < entries.length; place++) {
      // Each round starts with another entry.
      const index = (place + number) % entries.length;
      const { scenario, system, config, measure } = entries[index];
      context.progress.begin(`${scenario} · ${system} · ${config}`, number + 1, rounds);
      try {
        const sample = await measure();
        samples[index].push(sample);
        context.progress.end(sample);
      } catch (error) {
        if (context.stopping()) throw error;
        failures[index] = String(error.message).split("\n")[0].replaceAll(here, "");
        context.progress.fail(failures[index]);
      }
    }
  }
  return entries.map((entry, index) => reduce(entry, samples[index], failures[index]));
}

const latenciesOf = (enqueues) => ({
  enqueue_p50_ms: round(quantile(enqueues, 0.5), 3),
  enqueue_p99_ms: round(quantile(enqueues, 0.99), 3),
  enqueue_max_ms: round(quantile(enqueues, 1), 3),
});

function reduce({ scenario, system, config }, samples, failure) {
  const of = (key) => median(samples.map((sample) => sample[key]));
  const pickups = samples.flatMap((sample) => sample.pickups ?? []);
  const enqueues = samples.flatMap((sample) => sample.enqueues ?? []);
  const redis = round(of("redis_cpu_s_per_100k"), 3);
  return {
    scenario,
    system,
    config,
    jobs_per_second: round(of("jobs_per_second"), 0),
    pickup_p50_ms: round(quantile(pickups, 0.5), 3),
    pickup_p99_ms: round(quantile(pickups, 0.99), 3),
    node_cpu_s_per_100k: round(of("node_cpu_s_per_100k"), 3),
    server_cpu_s_per_100k: round(of("server_cpu_s_per_100k"), 3),
    ...(redis === null ? {} : { redis_cpu_s_per_100k: redis }),
    ...(enqueues.length === 0 ? {} : latenciesOf(enqueues)),
    rounds: samples.length,
    samples: samples.map(({ pickups: _, enqueues, ...sample }) => ({
      ...sample,
      ...(enqueues ? latenciesOf(enqueues) : {}),
    })),
    ...(failure ? { failure } : {}),
  };
}

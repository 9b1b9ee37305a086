// One table: what was measured, ours, BullMQ's, and whether the target is met.
const number = (value, digits = 0) =>
  value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });

const targets = {
  jobs_per_second: { atLeast: 3 },
  pickup_p50_ms: { atMost: 1 },
  pickup_p99_ms: { atMost: 1 },
  bytes_per_item: { atMost: 0.5 },
};

const names = {
  jobs_per_second: "end to end, items/s",
  pickup_p50_ms: "pickup while idle, p50 ms",
  pickup_p99_ms: "pickup while idle, p99 ms",
  bytes_per_item: "Redis memory, bytes per item",
};

export function compare(key, ours, theirs) {
  const { atLeast, atMost } = targets[key];
  const ratio = ours / theirs;
  const met = atLeast === undefined ? ratio <= atMost : ratio >= atLeast;
  const wanted = atLeast === undefined ? `at most ${atMost}` : `at least ${atLeast}`;
  return { what: names[key], ours, bullmq: theirs, ratio, wanted, met };
}

export const rate = (what, ours) => ({
  ...{ what, ours, bullmq: null, ratio: null },
  ...{ wanted: "at least 1,000,000/s", met: ours >= 1e6 },
});

export function tableOf(rows, about) {
  const lines = rows.map(({ what, ours, bullmq, ratio, wanted, met }) => {
    const digits = ours < 100 ? 2 : 0;
    const values = [
      number(ours, digits),
      bullmq === null ? "–" : number(bullmq, digits),
      ratio === null ? "–" : number(ratio, 2),
    ];
    return `| ${[what, ...values, wanted, met ? "yes" : "**no**"].join(" | ")} |`;
  });
  return `# The standalone queue beside BullMQ on Redis

${about.date.slice(0, 10)}, ${about.processors} processors, Node ${about.node}, Redis ${about.redis}, bullmq ${about.bullmq}.
Medians over ${about.rounds} rounds, both interleaved; payloads of about 100 bytes; ${number(about.items)} items for memory.
End to end: one process producing one by one with 200 in flight, one consuming with concurrency 200.

| What | Millrace | BullMQ | Ratio | Wanted | Met |
| --- | ---: | ---: | ---: | --- | --- |
${lines.join("\n")}
`;
}

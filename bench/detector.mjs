// What the payload rules cost on the enqueue path, with writing the JSON text: microseconds per payload
// and per kilobyte.
// Told as wall time and as processor time: on a busy machine only the second is the rules' own cost.
// Run after `npm run build`: node bench/detector.mjs [folder of the built domain]

import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const folder = resolve(process.argv[2] ?? new URL("../dist/domain", import.meta.url).pathname);
const load = (file) => import(pathToFileURL(resolve(folder, file)).href);
const { validatePayload } = await load("payload-rules.js");
const { findSensitive } = await load("sensitive-content.js");

const rounds = 7;
const roundMs = 60;

const id = (n) => `018f3b1e-7c2a-7def-8a1b-${String(n).padStart(12, "0")}`;
const sentence = "The parcel was handed over at the front desk and signed for by the caretaker. ";
const prose = (length) => sentence.repeat(Math.ceil(length / sentence.length)).slice(0, length);

const line = (n) => ({
  order_id: id(n),
  sku: `SKU-${n}-BLUE`,
  quantity: (n % 7) + 1,
  price: 19.99,
  shipped: n % 2 === 0,
  address: { city: "Rotterdam", country_code: "NL", lines: ["Dock 4", "Hall B"] },
});

/** The same in each run, and nothing repeats soon. */
const mixed = (length, letters) => {
  let seed = 7;
  const next = () => {
    seed = (seed * 48_271) % 2_147_483_647;
    return letters[seed % letters.length];
  };
  return Array.from({ length }, next).join("");
};
const small = "abcdefghijklmnopqrstuvwxyz";

const envelope = {
  tenant_id: "acme",
  correlation_id: id(1),
  idempotency_key: "order-1842-shipped",
  connection_id: "conn_7",
};

const fill = (bytes, part) => {
  const items = [];
  for (let size = 0; size < bytes; ) {
    const item = part(items.length);
    items.push(item);
    size += JSON.stringify(item).length + 1;
  }
  return items;
};

const manyKeys = (count, word) =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`${word}_of_order${n}`, n % 97]));

const payloads = {
  "100 B, ids": { user_id: id(1), template: "welcome", locale: "nl-NL", attempt: 1 },
  "1 KB, envelope and lines": { ...envelope, data: { lines: fill(800, line) } },
  "1 KB, prose": { ...envelope, note: prose(850) },
  "1 KB, one letter": { ...envelope, note: "x".repeat(850) },
  "1 KB, one word": { ...envelope, note: mixed(850, small) },
  "1 KB, letters and digits": { ...envelope, note: mixed(850, `${small}0123456789`) },
  "1 KB, joined words": { ...envelope, note: mixed(850, `${small}ABCDEFG0123456789-_.`) },
  "1 KB, joined numbers": { ...envelope, note: "1234-5678-".repeat(85) },
  "1 KB, hex": { ...envelope, note: mixed(850, "0123456789abcdef") },
  "10 KB, nested": { ...envelope, data: { lines: fill(10_000, line) } },
  "10 KB, ids": { ...envelope, ids: fill(10_000, id) },
  "10 KB, prose": { ...envelope, notes: fill(10_000, () => prose(1_000)) },
  "100 KB, nested": { ...envelope, data: { lines: fill(100_000, line) } },
  "100 KB, ids": { ...envelope, ids: fill(100_000, id) },
  "100 KB, 4,000 different keys": { ...envelope, data: manyKeys(4_000, "city") },
  "200 KB, 8,000 different keys": { ...envelope, data: manyKeys(8_000, "country_code") },
  "100 KB, prose": { ...envelope, notes: fill(100_000, () => prose(3_000)) },
};

function measure(run) {
  const samples = [];
  for (let round = 0; round <= rounds; round++) {
    let calls = 0;
    const cpuBefore = process.cpuUsage();
    const start = performance.now();
    let elapsed = 0;
    while (elapsed < roundMs) {
      for (let i = 0; i < 20; i++) run();
      calls += 20;
      elapsed = performance.now() - start;
    }
    const cpu = process.cpuUsage(cpuBefore);
    // The first round only warms up.
    if (round > 0)
      samples.push({ wall: (elapsed * 1000) / calls, cpu: (cpu.user + cpu.system) / calls });
  }
  const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
  return { wall: median(samples.map((s) => s.wall)), cpu: median(samples.map((s) => s.cpu)) };
}

const round = (value) => Math.round(value * 100) / 100;

const results = Object.entries(payloads).map(([payload, value]) => {
  const check = validatePayload(value);
  if (!check.ok) throw new Error(`${payload}: ${check.errors[0].message}`);
  const whole = measure(() => validatePayload(value));
  const detector = measure(() => findSensitive(value));
  const kilobytes = check.sizeBytes / 1024;
  return {
    payload,
    bytes: check.sizeBytes,
    check_us: round(whole.wall),
    check_us_per_kb: round(whole.wall / kilobytes),
    check_cpu_us_per_kb: round(whole.cpu / kilobytes),
    detector_us_per_kb: round(detector.wall / kilobytes),
    detector_cpu_us_per_kb: round(detector.cpu / kilobytes),
    stringify_us: round(measure(() => JSON.stringify(value)).wall),
  };
});

const worstOf = (field) =>
  Math.max(...results.filter((r) => r.bytes >= 1000).map((result) => result[field]));
const worst = worstOf("check_us_per_kb");
const worstCpu = worstOf("check_cpu_us_per_kb");
for (const r of results) {
  console.error(
    `${r.payload.padEnd(26)} ${String(r.bytes).padStart(7)} B  ${String(r.check_us).padStart(8)} µs  ` +
      `${String(r.check_us_per_kb).padStart(6)} µs/KB  ${String(r.check_cpu_us_per_kb).padStart(6)} CPU µs/KB  ` +
      `(JSON.stringify ${r.stringify_us} µs)`,
  );
}
console.error(
  `slowest from 1 KB on: ${worst} µs per KB, ${worstCpu} of processor time (budget 20)`,
);
console.log(
  JSON.stringify(
    { budget_us_per_kb: 20, worst_us_per_kb: worst, worst_cpu_us_per_kb: worstCpu, results },
    null,
    2,
  ),
);

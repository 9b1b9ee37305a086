// Payloads like those of an order system: plain words and numbers, nothing that looks like a secret.
const cities = ["Utrecht", "Lisbon", "Oslo", "Graz", "Porto", "Ghent", "Turku", "Bergen"];

function line(n) {
  const city = cities[n % cities.length];
  return { order: 100_000 + n, city, parcels: n % 7, note: "leave it beside the door" };
}

// Made once: what it costs to make payloads is nobody's measure.
const different = 1000;
const short = Array.from({ length: different }, (_, i) => line(i));
const long = new Map();

function linesOf(n, bytes) {
  const known = long.get(bytes) ?? [];
  long.set(bytes, known);
  known[n] ??= Array.from(
    { length: Math.ceil((bytes - 20) / 80) },
    (_, i) => short[(n + 20 + 80 * i) % different],
  );
  return known[n];
}

// `n` numbers the job, `at` is when it was enqueued (0 if nobody asks).
export function payloadOf(n, bytes = 100, at = 0) {
  const kind = n % different;
  if (bytes <= 100) return { n, at, ...short[kind] };
  return { n, at, lines: linesOf(kind, bytes) };
}

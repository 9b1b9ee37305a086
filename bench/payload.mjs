// Payloads like those of an order system: plain words and numbers, nothing that looks like a secret.
const cities = ["Utrecht", "Lisbon", "Oslo", "Graz", "Porto", "Ghent", "Turku", "Bergen"];

function line(n) {
  const city = cities[n % cities.length];
  return { order: 100_000 + n, city, parcels: n % 7, note: "leave it beside the door" };
}

// `n` numbers the job, `at` is when it was enqueued (0 if nobody asks).
export function payloadOf(n, bytes = 100, at = 0) {
  if (bytes <= 100) return { n, at, ...line(n % 1000) };
  const lines = [];
  for (let size = 20; size < bytes; size += 80) lines.push(line((n + size) % 1000));
  return { n, at, lines };
}

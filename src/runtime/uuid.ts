import { randomFillSync } from "node:crypto";

const hex = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));
const pool = new Uint8Array(4096);
let used = pool.length;
let lastMs = 0;
let counter = 0;

function byte(): string {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  return hex[pool[used++] ?? 0] ?? "00";
}

/**
 * UUIDv7 with a counter in rand_a, so that ids made in one millisecond stay in order and index
 * inserts stay at the right edge. Time here only spreads ids; nothing decides by it.
 */
export function uuidv7(): string {
  const now = Date.now();
  if (now > lastMs) {
    lastMs = now;
    counter = 0;
  } else if (++counter > 0xfff) {
    lastMs++;
    counter = 0;
  }
  const time = lastMs.toString(16).padStart(12, "0");
  const seq = counter.toString(16).padStart(3, "0");
  const variant = ((Number.parseInt(byte(), 16) & 0x3f) | 0x80).toString(16);
  const tail = `${byte()}-${byte()}${byte()}${byte()}${byte()}${byte()}${byte()}`;
  return `${time.slice(0, 8)}-${time.slice(8)}-7${seq}-${variant}${tail}`;
}

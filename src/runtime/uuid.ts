import { randomFillSync } from "node:crypto";

const bytes = Buffer.allocUnsafe(8_192);
let randomHex = "";
let used = 0;
let lastMs = 0;
let counter = 0;
let time = "";

function takeRandomHex(digits: number): string {
  if (used + digits > randomHex.length) {
    randomHex = randomFillSync(bytes).toString("hex");
    used = 0;
  }
  used += digits;
  return randomHex.slice(used - digits, used);
}

/**
 * UUIDv7 with a counter in rand_a, so that ids made in one millisecond stay in order and index
 * inserts stay at the right edge. Time here only spreads ids; nothing decides by it.
 */
export function uuidv7(): string {
  const now = Date.now();
  if (now > lastMs) startMs(now);
  else if (++counter > 0xfff) startMs(lastMs + 1);
  const seq = (0x7000 + counter).toString(16);
  const random = takeRandomHex(16);
  const variant = "89ab"[random.charCodeAt(0) & 3];
  return `${time}${seq}-${variant}${random.slice(1, 4)}-${random.slice(4)}`;
}

function startMs(ms: number): void {
  lastMs = ms;
  counter = 0;
  const hex = ms.toString(16).padStart(12, "0");
  time = `${hex.slice(0, 8)}-${hex.slice(8)}-`;
}

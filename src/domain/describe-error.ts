// Turns whatever a handler threw into something bounded, storable and groupable.

import type { Failure, JobError } from "./error-class.ts";

const maxMessageBytes = 500;
const maxStackBytes = 4_096;

export function describeError(type: string, error: unknown, failure: Failure): JobError {
  const name = error instanceof Error ? printable(error.name) : typeof error;
  const raw = printable(error instanceof Error ? error.message : error);
  const message = storable(raw === "" ? name : raw, maxMessageBytes);
  const described: JobError = {
    class: failure.class,
    fingerprint: fingerprint(type, failure.class, name, message),
    message,
  };
  const stack: unknown = error instanceof Error ? error.stack : undefined;
  return typeof stack === "string"
    ? { ...described, stack: storable(stack, maxStackBytes) }
    : described;
}

/** Numbers, ids and quoted parts differ between two cases of the same error: leave them out. */
function fingerprint(type: string, errorClass: string, name: string, message: string): string {
  const shape = message
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi, "#")
    .replace(/"[^"]{0,200}"|'[^']{0,200}'/g, "#")
    .replace(/\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b|\b(?=\w*\d)\w{16,}\b/gi, "#")
    .replace(/\b0x[0-9a-f]+\b|\d+/gi, "#");
  return fnv1a64(`${type}\n${errorClass}\n${name}\n${shape}`);
}

function fnv1a64(text: string): string {
  let hash = 0xcbf29ce484222325n;
  for (let i = 0; i < text.length; i++) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(text.charCodeAt(i))) * 0x100000001b3n);
  }
  return hash.toString(16).padStart(16, "0");
}

/** Whatever it is: describing a failure must not fail. */
function printable(value: unknown): string {
  if (typeof value === "string") return value;
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return typeof value === "bigint" ? String(value) : Object.prototype.toString.call(value);
  }
}

/** PostgreSQL refuses NUL and lone surrogates; at most so many bytes, cut between characters. */
export function storable(text: string, maxBytes: number): string {
  const clean = text.replaceAll("\u0000", "\uFFFD").toWellFormed();
  const encoded = new TextEncoder().encode(clean);
  if (encoded.length <= maxBytes) return clean;
  let end = maxBytes;
  while (end > 0 && ((encoded[end] ?? 0) & 0xc0) === 0x80) end--;
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(encoded.subarray(0, end));
}

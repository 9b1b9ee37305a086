// Turns whatever a handler threw into something bounded, storable and groupable.

import type { Failure, JobError } from "./error-class.ts";

const maxMessageBytes = 500;
const maxStackBytes = 4_096;

export function describeError(type: string, error: unknown, failure: Failure): JobError {
  const name = error instanceof Error ? error.name : typeof error;
  const raw = error instanceof Error ? error.message : printable(error);
  const message = cutBytes(clean(raw === "" ? name : raw), maxMessageBytes);
  const described: JobError = {
    class: failure.class,
    fingerprint: fingerprint(type, failure.class, name, message),
    message,
  };
  const stack = error instanceof Error ? error.stack : undefined;
  return stack === undefined
    ? described
    : { ...described, stack: cutBytes(clean(stack), maxStackBytes) };
}

/** Numbers, ids and quoted parts differ between two cases of the same error: leave them out. */
export function fingerprint(
  type: string,
  errorClass: string,
  name: string,
  message: string,
): string {
  const shape = message
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi, "#")
    .replace(/"[^"]{0,200}"|'[^']{0,200}'/g, "#")
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

function printable(value: unknown): string {
  try {
    return typeof value === "string" ? value : (JSON.stringify(value) ?? String(value));
  } catch {
    return String(value);
  }
}

/** PostgreSQL refuses NUL and lone surrogates; a failure must never be unstorable. */
function clean(text: string): string {
  return text.replaceAll("\u0000", "\uFFFD").toWellFormed();
}

function cutBytes(text: string, bytes: number): string {
  const encoded = new TextEncoder().encode(text);
  if (encoded.length <= bytes) return text;
  return new TextDecoder().decode(encoded.subarray(0, bytes)).replace(/\uFFFD+$/, "");
}

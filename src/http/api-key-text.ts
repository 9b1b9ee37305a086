// What a key looks like: prefix, id, secret. Only the SHA-256 of the secret is ever stored.

import { createHash, randomBytes, timingSafeEqual } from "node:crypto";

const shape = /^mrk_([0-9a-f]{32})_([0-9a-f]{64})$/;

export interface KeyText {
  readonly id: string;
  readonly secret: string;
}

export const newSecret = (): string => randomBytes(32).toString("hex");

export const keyText = ({ id, secret }: KeyText): string =>
  `mrk_${id.replaceAll("-", "")}_${secret}`;

export function parseKey(text: string): KeyText | null {
  const match = shape.exec(text);
  const [, hex, secret] = match ?? [];
  if (hex === undefined || secret === undefined) return null;
  return { id: hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5"), secret };
}

export const hashOf = (secret: string): Buffer => createHash("sha256").update(secret).digest();

/** In a time that tells nothing. */
export const isOneOf = (hash: Buffer, hashes: readonly Buffer[]): boolean =>
  hashes.reduce((found, other) => timingSafeEqual(hash, other) || found, false);

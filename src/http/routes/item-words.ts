// What a robot says of an item, read and checked.

import { MillraceError } from "../../domain/errors.ts";
import type { Token } from "../../domain/token.ts";

const tokenShape = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\/(\d{1,9})$/;

export function parseToken(text: string): Token {
  const [, claimId, claimNo] = tokenShape.exec(text) ?? [];
  if (claimId === undefined || claimNo === undefined)
    throw new MillraceError("REQUEST_INVALID", "body.token: it is not a token");
  return { claimId, claimNo: Number(claimNo) };
}

/** PostgreSQL can read neither NUL nor half a surrogate pair back. */
const unstorable = /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/i;

export function resultText(result: unknown, limitBytes: number): string | null {
  if (result === undefined || result === null) return null;
  const text = JSON.stringify(result);
  if (unstorable.test(text)) throw new MillraceError("RESULT_INVALID");
  if (Buffer.byteLength(text) > limitBytes) throw new MillraceError("RESULT_TOO_LARGE");
  return text;
}

// Everything that comes in is parsed by the route's own schemas, and nothing else is looked at.

import type { z } from "zod";
import { MillraceError } from "../domain/errors.ts";
import type { Input, Route } from "./contract/route.ts";
import { requestInvalid } from "./problem.ts";

interface RawInput {
  readonly params: unknown;
  readonly query: unknown;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
}

export function parseInput(route: Route, raw: RawInput): Input<Route> {
  return {
    params: part("path", route.params, raw.params),
    query: part("query", route.query, raw.query),
    headers: part("headers", route.headers, raw.headers),
    body: part("body", route.body, raw.body ?? undefined),
  } as Input<Route>;
}

function part(name: string, schema: z.ZodType | undefined, value: unknown): unknown {
  if (schema === undefined) return undefined;
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw requestInvalid(name, parsed.error);
}

interface Cursor {
  readonly list: string;
  readonly place: readonly string[];
}

/** Opaque to clients, and good for one kind of list only. */
export const writeCursor = (list: string, ...place: string[]): string =>
  Buffer.from(JSON.stringify({ list, place } satisfies Cursor)).toString("base64url");

export function readCursor(
  list: string,
  shapes: readonly RegExp[],
  text: string | undefined,
): readonly string[] | null {
  if (text === undefined) return null;
  const cursor = decode(text);
  const isMine =
    cursor?.list === list &&
    Array.isArray(cursor.place) &&
    cursor.place.length === shapes.length &&
    cursor.place.every((one, i) => typeof one === "string" && shapes[i]?.test(one));
  if (!isMine) throw new MillraceError("CURSOR_INVALID");
  return cursor.place;
}

function decode(text: string): Cursor | null {
  try {
    return JSON.parse(Buffer.from(text, "base64url").toString("utf8")) as Cursor | null;
  } catch {
    return null;
  }
}

export const uuidShape = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
export const numberShape = /^\d{1,15}$/;
/** As PostgreSQL writes a timestamptz in UTC or with an offset. */
export const instantShape =
  /^\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}(\.\d{1,6})?[+-]\d{2}(:\d{2}){0,2}$/;

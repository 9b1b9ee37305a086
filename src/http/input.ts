// Everything that comes in is parsed by the route's own schemas, and nothing else is looked at.

import type { z } from "zod";
import { MillraceError } from "../domain/errors.ts";
import type { Input, Route } from "./contract/route.ts";
import { problemAt, requestInvalid } from "./problem.ts";

interface RawInput {
  readonly params: unknown;
  readonly query: unknown;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
}

export function parseInput(route: Route, raw: RawInput): Input<Route> {
  refuseStrayQuery(route, raw.query as Readonly<Record<string, unknown>>);
  return {
    params: part("path", route.params, raw.params),
    query: part("query", route.query, raw.query),
    headers: part("headers", route.headers, raw.headers),
    body: part("body", route.body, raw.body ?? undefined),
  } as Input<Route>;
}

/** An empty value would be read as the number 0. Probes add what they like to routes that are open to all. */
function refuseStrayQuery(
  { query, access }: Route,
  given: Readonly<Record<string, unknown>>,
): void {
  if (query === undefined && access === "public") return;
  for (const [name, value] of Object.entries(given)) {
    const path = `query.${name}`.slice(0, 200);
    if (query === undefined) throw problemAt(path, "it is not known here");
    if (typeof value === "string" && value.trim() === "") throw problemAt(path, "it is empty");
  }
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

/** A page of a short list that is there as a whole, by id. */
export function pageById<T extends { readonly id: string }>(
  list: string,
  all: readonly T[],
  { cursor, limit }: { readonly cursor?: string | undefined; readonly limit: number },
): { readonly shown: T[]; readonly next_cursor: string | null } {
  const [after = ""] = readCursor(list, [uuidShape], cursor) ?? [];
  const left = all.filter(({ id }) => id > after).sort((a, b) => (a.id < b.id ? -1 : 1));
  const shown = left.slice(0, limit);
  const last = left.length > shown.length ? shown.at(-1) : undefined;
  return { shown, next_cursor: last === undefined ? null : writeCursor(list, last.id) };
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

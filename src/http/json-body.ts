// Bodies are JSON, and are looked at before anybody works with them: nesting costs stack, some keys would
// reach into JavaScript's own objects, and what is not kept as it was sent is not accepted.

import { isUtf8 } from "node:buffer";
import { MillraceError } from "../domain/errors.ts";
import { findInexactNumber } from "./exact-numbers.ts";
import { problemAt } from "./problem.ts";

/** A payload may be 64 deep and stands three levels down in a bulk request. */
const deepest = 68;
/** JSON.parse itself takes any depth; up to this length what it makes of a deep text is small. */
const harmlessLength = 256 * 1024;
const forbidden = new RegExp(
  `"${[..."__proto__"].map((letter) => `(?:${letter}|${escapeOf(letter)})`).join("")}"\\s*:`,
);

/** A letter as JSON may write it, too. */
function escapeOf(letter: string): string {
  const code = letter.charCodeAt(0).toString(16).padStart(4, "0");
  return `\\\\u${code.replace("f", "[fF]")}`;
}

/** Bytes that are no UTF-8 would be stored as something else. */
export function readJsonBody(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw invalid("body: it is not UTF-8");
  return parseJsonBody(bytes.toString("utf8"));
}

function parseJsonBody(text: string): unknown {
  if (text.trim() === "") return undefined;
  if (text.length > harmlessLength && isDeepText(text)) throw tooDeep();
  if (forbidden.test(text)) throw invalid("body: it has a key that is reserved by JavaScript");
  const value = parse(text);
  if (text.length <= harmlessLength && isDeep(value)) throw tooDeep();
  refuseInexact(text);
  return value;
}

function refuseInexact(text: string): void {
  const found = findInexactNumber(text);
  if (found === null) return;
  const path = (found === "" ? "body" : `body.${found}`).slice(0, 200);
  const message = "the number has digits that would be lost; send it as a string";
  throw problemAt(path, message, "number_inexact");
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalid("body: it is not JSON");
  }
}

const invalid = (message: string) => new MillraceError("REQUEST_INVALID", message);
const tooDeep = () => invalid("body: it is nested too deeply");

/** Level by level: no depth costs it stack. */
function isDeep(root: unknown): boolean {
  let level: object[] = isObject(root) ? [root] : [];
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > deepest) return true;
    const next: object[] = [];
    for (const value of level) {
      if (Array.isArray(value)) for (const inner of value) isObject(inner) && next.push(inner);
      else addValues(value as Record<string, unknown>, next);
    }
    level = next;
  }
  return false;
}

function addValues(value: Readonly<Record<string, unknown>>, to: object[]): void {
  for (const key in value) {
    const inner = value[key];
    if (isObject(inner)) to.push(inner);
  }
}

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;

function isDeepText(text: string): boolean {
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const char = text.charCodeAt(i);
    if (char === 34) i = endOfString(text, i);
    else if (char === 91 || char === 123) {
      if (++depth > deepest) return true;
    } else if (char === 93 || char === 125) depth--;
  }
  return false;
}

/** Where the string that begins here ends; the text's end if it does not. */
function endOfString(text: string, from: number): number {
  for (let end = text.indexOf('"', from + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let last = end - 1;
    while (text.charCodeAt(last) === 92) last--;
    if ((end - last) % 2 === 1) return end;
  }
  return text.length;
}

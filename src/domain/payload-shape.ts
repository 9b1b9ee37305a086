// One walk over a payload that finds both what JSON and PostgreSQL cannot store and what must not
// be stored. It is on the path of every enqueue: paths are only built for what is found, recursion
// ends at the depth limit, and the walk ends when it has seen enough.

import { embeddedValueKind } from "./embedded-content.ts";
import { renderPath } from "./payload-path.ts";
import { isPlain } from "./plain-object.ts";
import { isPlainWords, isUuidOrStamp } from "./plain-words.ts";
import { judgeKey, judgeKeyAt } from "./sensitive-keys.ts";
import { isForbiddenKey, type KeyVerdict } from "./sensitive-names.ts";
import { isCardNumber, secretValueKind, shortestSecret } from "./sensitive-values.ts";
import { isStandIn } from "./stand-in.ts";

export type ShapeRule =
  | "too_deep"
  | "too_many_keys"
  | "too_many_values"
  | "too_large"
  | "string_too_long"
  | "forbidden_key"
  | "null_character"
  | "lone_surrogate"
  | "non_finite_number"
  | "not_json";

export type SensitiveRule = "sensitive_key" | "sensitive_value" | "embedded_content";

export interface Violation {
  readonly rule: ShapeRule | SensitiveRule;
  readonly path: string;
  /** What was found, in our own words; never anything from the payload. */
  readonly kind: string;
}

export interface ShapeLimits {
  readonly maxDepth: number;
  readonly maxKeys: number;
  readonly maxValues: number;
  readonly maxStringLength: number;
  /** Of the JSON text, counted low: parts that are repeated are written as often as they are met. */
  readonly maxBytes: number;
}

export const defaultShapeLimits: ShapeLimits = Object.freeze({
  maxDepth: 64,
  maxKeys: 10_000,
  maxValues: 1_000_000,
  maxStringLength: 256 * 1024,
  maxBytes: Number.POSITIVE_INFINITY,
});

export const mostViolations = 100;

export interface InspectOptions {
  readonly limits?: ShapeLimits;
  /** False when the JSON text has shown that no string holds U+0000 or a lone surrogate. */
  readonly checkCharacters?: boolean;
}

interface Walk {
  readonly limits: ShapeLimits;
  readonly checkCharacters: boolean;
  readonly steps: (string | number)[];
  readonly found: Violation[];
  keys: number;
  values: number;
  bytes: number;
  stopped: boolean;
}

/** Of a file; fewer are a key or a checksum. */
const fewestBytes = 384;

const noKey = judgeKey("");
const isOwn = Object.prototype.hasOwnProperty;

export const inspect = (payload: unknown, options: InspectOptions = {}): Violation[] =>
  survey(payload, options).found;

/** `complete`: every part of the payload was seen, so that writing all of it costs no more than that did. */
export function survey(
  payload: unknown,
  options: InspectOptions = {},
): { readonly found: Violation[]; readonly complete: boolean } {
  const walk: Walk = {
    limits: options.limits ?? defaultShapeLimits,
    checkCharacters: options.checkCharacters ?? true,
    steps: [],
    found: [],
    keys: 0,
    values: 0,
    // The last value has no comma.
    bytes: -1,
    stopped: false,
  };
  visit(walk, payload, 0, noKey);
  return { found: walk.found, complete: !walk.stopped && !walk.found.some(hidesParts) };
}

/** What is too deep or no plain object is not looked into. */
const hidesParts = ({ rule }: Violation): boolean => rule === "too_deep" || rule === "not_json";

function report(walk: Walk, rule: Violation["rule"], depth: number, kind: string): void {
  walk.found.push({ rule, path: renderPath(walk.steps, depth), kind });
  if (walk.found.length >= mostViolations) walk.stopped = true;
}

function visit(walk: Walk, value: unknown, depth: number, key: KeyVerdict): void {
  // A character and a comma at least.
  count(walk, typeof value === "string" ? value.length + 3 : 2);
  if (walk.stopped) return;
  if (typeof value === "string") visitString(walk, value, depth, key);
  else if (typeof value === "number") visitNumber(walk, value, depth, key);
  else if (typeof value === "object") {
    if (value !== null) visitObject(walk, value, depth, key);
  } else if (typeof value !== "boolean") report(walk, "not_json", depth, typeof value);
}

function count(walk: Walk, bytes: number): void {
  walk.values++;
  walk.bytes += bytes;
  if (walk.values > walk.limits.maxValues) stop(walk, "too_many_values");
  else if (walk.bytes > walk.limits.maxBytes) stop(walk, "too_large");
}

function stop(walk: Walk, rule: ShapeRule): void {
  if (walk.stopped) return;
  report(walk, rule, 0, rule);
  walk.stopped = true;
}

function visitObject(walk: Walk, value: object, depth: number, key: KeyVerdict): void {
  if (depth >= walk.limits.maxDepth) report(walk, "too_deep", depth, "nesting");
  else if (writesItself(value)) report(walk, "not_json", depth, "object with toJSON");
  else if (Array.isArray(value)) visitElements(walk, value, depth, key);
  else if (isPlain(value)) visitProperties(walk, value, depth, key);
  else report(walk, "not_json", depth, "object of a class");
}

function visitElements(walk: Walk, value: readonly unknown[], depth: number, key: KeyVerdict) {
  const glances = key.plain && !walk.checkCharacters;
  for (let i = 0; i < value.length && !walk.stopped; i++) {
    const element = value[i];
    if (glances && isNothing(walk, element)) {
      count(walk, typeof element === "string" ? element.length + 3 : 2);
      continue;
    }
    walk.steps[depth] = i;
    visit(walk, value[i], depth + 1, key);
  }
}

function visitProperties(
  walk: Walk,
  value: Readonly<Record<string, unknown>>,
  depth: number,
  parent: KeyVerdict,
): void {
  const { maxKeys } = walk.limits;
  const glances = !parent.deep && !walk.checkCharacters;
  for (const key in value) {
    // Asked like this the engine knows the answer for most objects without looking.
    if (!isOwn.call(value, key)) continue;
    if (++walk.keys > maxKeys) stop(walk, "too_many_keys");
    if (walk.stopped) return;
    const child = value[key];
    const own = isPairValue(key) ? judgePair(value) : judgeKeyAt(walk.keys, key);
    // Most properties: nothing can be wrong with them, so that only counts are left of `visit`.
    if (glances && own.plain && isNothing(walk, child)) {
      count(walk, key.length + (typeof child === "string" ? child.length + 6 : 5));
      continue;
    }
    // JSON leaves such a property out, and reading it back gives undefined again.
    if (child === undefined) continue;
    walk.bytes += key.length + 3;
    walk.steps[depth] = key;
    if (own.secretItself !== undefined) {
      report(walk, "sensitive_value", depth + 1, own.secretItself);
    }
    if (isForbiddenKey(key)) report(walk, "forbidden_key", depth + 1, "prototype key");
    if (walk.checkCharacters) visitCharacters(walk, key, depth + 1);
    if (key === "data" && value.type === "Buffer" && Array.isArray(child)) {
      // Bytes, as JSON writes them.
      if (child.length >= fewestBytes) report(walk, "embedded_content", depth + 1, "file_content");
    }
    const inherits = parent.deep && own.secret === undefined && !own.harmless;
    visit(walk, child, depth + 1, inherits ? parent : own);
  }
}

const ofValue = judgeKey("value");
const isPairValue = (key: string): boolean => key === "value" || key === "Value" || key === "VALUE";

/** `{ "name": "password", "value": … }`: the name is a value itself. */
function judgePair(pair: Readonly<Record<string, unknown>>): KeyVerdict {
  const name = pair.key ?? pair.name ?? pair.Key ?? pair.Name ?? pair.KEY ?? pair.NAME;
  if (typeof name !== "string" || name.length > longestPairName) return ofValue;
  const named = judgeKey(name);
  return named.secret === undefined ? ofValue : named;
}

/** Longer ones are texts, and are not kept in mind as keys are. */
const longestPairName = 64;

/** Can nothing be wrong with it? */
function isNothing({ limits }: Walk, value: unknown): boolean {
  if (typeof value === "number") return value >= -harmlessNumber && value <= harmlessNumber;
  return typeof value === "string" && value.length <= limits.maxStringLength && isPlainText(value);
}

/** What it would be written as is not what is looked at here. */
const writesItself = (value: object): boolean =>
  typeof (value as { readonly toJSON?: unknown }).toJSON === "function";

/** Too small for a card's. */
const harmlessNumber = 1e13;

function visitNumber(walk: Walk, value: number, depth: number, key: KeyVerdict): void {
  if (!Number.isFinite(value)) report(walk, "non_finite_number", depth, "number");
  else if (key.secret !== undefined) {
    if (key.digits === "counted" || isCode(key, String(value)))
      report(walk, "sensitive_key", depth, key.secret);
  } else if (value > harmlessNumber && !key.identifier && isCardNumber(String(value))) {
    report(walk, "sensitive_value", depth, "card_number");
  }
}

function visitString(walk: Walk, value: string, depth: number, key: KeyVerdict): void {
  if (value.length > walk.limits.maxStringLength) {
    report(walk, "string_too_long", depth, "string");
    return;
  }
  if (walk.checkCharacters) visitCharacters(walk, value, depth);
  if (value !== "") visitText(walk, value, depth, key);
}

// The first kind that fits is told: one place, one problem.
function visitText(walk: Walk, value: string, depth: number, key: KeyVerdict): void {
  if (key.secret !== undefined && holdsSecret(key, value)) {
    report(walk, "sensitive_key", depth, key.secret);
    return;
  }
  if (key.embedded === undefined && isPlainText(value)) return;
  const secret = secretValueKind(value, key.identifier);
  if (secret !== undefined) {
    report(walk, "sensitive_value", depth, secret);
    return;
  }
  const embedded = key.embedded ?? embeddedValueKind(value);
  if (embedded !== undefined) report(walk, "embedded_content", depth, embedded);
}

/** Embedded content is longer than the shortest secret. */
const isPlainText = (value: string): boolean =>
  value.length < shortestSecret || isPlainWords(value) || isUuidOrStamp(value);

const shortCode = /^\s*\d{3,8}\s*$/;
const postalCode = /^\s*[1-9]\d{5}\s*$/;

function isCode({ digits }: KeyVerdict, value: string): boolean {
  if (digits === "not_postal" && postalCode.test(value)) return false;
  return digits !== "ignored" && shortCode.test(value);
}

const answer = /^\s*(?:yes|no|ok|true|false|pass|fail|passed|failed|all|none|[yn01])\s*$/i;

const plainWords = /^[\p{L}\p{M}\s'’.,;:!?-]*$/u;

function holdsSecret(key: KeyVerdict, value: string): boolean {
  if (key.digits === "required" || key.digits === "not_postal") return isCode(key, value);
  if ((key.answers && answer.test(value)) || (key.words && plainWords.test(value))) return false;
  return value.trim() !== "" && !isStandIn(value);
}

const loneSurrogate = /\p{Surrogate}/u;

function visitCharacters(walk: Walk, text: string, depth: number): void {
  if (text.includes("\u0000")) report(walk, "null_character", depth, "U+0000");
  if (loneSurrogate.test(text)) report(walk, "lone_surrogate", depth, "lone surrogate");
}

// What is known about keys, remembered.

import { type KeyVerdict, nameVerdict } from "./sensitive-names.ts";
import { secretValueKind } from "./sensitive-values.ts";

const longestShownKey = 64;
const shortestSecretKey = 14;

// Verdicts depend on the key alone and job payloads repeat their keys, so they are remembered;
// bounded, and never for a key that is itself a secret. When the newest are many they become the older
// ones, and the older ones are forgotten: what is met again and again stays, whoever passes by.
let newest = new Map<string, KeyVerdict>();
let older = new Map<string, KeyVerdict>();
// As many as one payload may have: of at most 64 characters each, that is a few megabytes at worst.
const newestAtMost = 10_000;

export function judgeKey(key: string): KeyVerdict {
  const known = newest.get(key);
  if (known !== undefined) return known;
  const again = older.get(key);
  if (again !== undefined) return remember(key, again);
  const verdict = nameVerdict(key);
  const secretItself = key.length < shortestSecretKey ? undefined : secretValueKind(key, false);
  if (secretItself !== undefined || key.length > longestShownKey) {
    return { ...verdict, secretItself, masked: true, plain: false };
  }
  return remember(key, verdict);
}

/** Is it itself a secret, or too long to be shown? */
export const isMasked = (key: string): boolean =>
  key.length > longestShownKey || judgeKey(key).masked;

const places = 128;
const lastKeys: string[] = new Array(places).fill("");
const lastVerdicts: KeyVerdict[] = new Array(places).fill(judgeKey(""));

/** The same for the key at some place of a payload, where the payload before often had the same one. */
export function judgeKeyAt(place: number, key: string): KeyVerdict {
  const at = place % places;
  if (lastKeys[at] === key) return lastVerdicts[at] as KeyVerdict;
  const verdict = judgeKey(key);
  if (verdict.masked !== true) {
    lastKeys[at] = key;
    lastVerdicts[at] = verdict;
  }
  return verdict;
}

function remember(key: string, verdict: KeyVerdict): KeyVerdict {
  if (newest.size >= newestAtMost) {
    older = newest;
    newest = new Map();
  }
  newest.set(key, verdict);
  return verdict;
}

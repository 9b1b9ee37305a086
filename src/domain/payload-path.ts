// Paths name the place of a problem and reach logs and callers, so a key that is a secret itself
// or overlong is not shown in them. No more of a path is put together than is shown: a hundred problems deep
// inside a payload must not cost more than finding them did.

import { isMasked } from "./sensitive-keys.ts";

const longestPath = 240;
const longestHalf = longestPath / 2;
const plainName = /^[A-Za-z_$][\w$-]*$/;

export function renderPath(steps: readonly (string | number)[], depth: number): string {
  let path = "$";
  let at = 0;
  while (at < depth && path.length <= longestPath) path += renderStep(steps[at++] ?? "");
  if (path.length <= longestPath) return path;
  let end = "";
  for (let i = depth - 1; i >= 0 && end.length < longestHalf; i--)
    end = renderStep(steps[i] ?? "") + end;
  return `${path.slice(0, longestHalf)}…${end.slice(-longestHalf)}`;
}

function renderStep(step: string | number): string {
  if (typeof step === "number") return `[${step}]`;
  if (isMasked(step)) return "[masked]";
  return plainName.test(step) ? `.${step}` : `[${printable(step)}]`;
}

// JSON.stringify escapes quotes, controls and lone surrogates; C1 controls and bidirectional
// marks it leaves alone, and they could disturb a terminal.
function printable(key: string): string {
  return JSON.stringify(key).replace(/[\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, "?");
}

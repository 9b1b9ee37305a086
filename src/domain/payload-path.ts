// Paths name the place of a problem and reach logs and callers, so a key that is a secret itself
// or overlong is not shown in them.

import { judgeKey } from "./sensitive-keys.ts";

const longestPath = 240;
const plainName = /^[A-Za-z_$][\w$-]*$/;

export function renderPath(steps: readonly (string | number)[], depth: number): string {
  let path = "$";
  for (let i = 0; i < depth; i++) path += renderStep(steps[i] ?? "");
  if (path.length <= longestPath) return path;
  return `${path.slice(0, longestPath / 2)}…${path.slice(-longestPath / 2)}`;
}

function renderStep(step: string | number): string {
  if (typeof step === "number") return `[${step}]`;
  if (judgeKey(step).masked) return "[masked]";
  return plainName.test(step) ? `.${step}` : `[${printable(step)}]`;
}

// JSON.stringify escapes quotes, controls and lone surrogates; C1 controls and bidirectional
// marks it leaves alone, and they could disturb a terminal.
function printable(key: string): string {
  return JSON.stringify(key).replace(/[\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, "?");
}

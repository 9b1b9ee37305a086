// Bodies are JSON, and are looked at before they are parsed: nesting costs stack, and some keys would
// reach into JavaScript's own objects.

import { MillraceError } from "../domain/errors.ts";

/** A payload may be 64 deep and stands three levels down in a bulk request. */
const deepest = 68;
const forbidden = /"(?:_|\\u005[fF]){2}proto(?:_|\\u005[fF]){2}"\s*:/;

export function parseJsonBody(text: string): unknown {
  if (text.trim() === "") return undefined;
  if (isTooDeep(text)) throw invalid("body: it is nested too deeply");
  if (forbidden.test(text)) throw invalid("body: it has a key that is reserved by JavaScript");
  try {
    return JSON.parse(text);
  } catch {
    throw invalid("body: it is not JSON");
  }
}

const invalid = (message: string) => new MillraceError("REQUEST_INVALID", message);

function isTooDeep(text: string): boolean {
  let depth = 0;
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const char = text.charCodeAt(i);
    if (inString) {
      if (char === 92) i++;
      else if (char === 34) inString = false;
    } else if (char === 34) inString = true;
    else if (char === 91 || char === 123) {
      if (++depth > deepest) return true;
    } else if (char === 93 || char === 125) depth--;
  }
  return false;
}

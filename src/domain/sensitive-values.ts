// Tells a secret by its shape, wherever it stands in a string. The regular expressions run in
// linear time: a shape either has a bounded length or may only begin where a run of its own
// characters begins, so no character is read more than a few times.

import { hasMark, keys } from "./key-shapes.ts";
import { announcesThing, namesCard } from "./number-names.ts";
import { settingKindIn } from "./settings-in-text.ts";
import { Shapes } from "./shapes.ts";

// ODBC writes its password like a shell writes where it stands. It is one of several settings, and no path.
const user = "(?<![A-Za-z0-9])U(?:ID|id|ser(?: ?I[Dd])?)=";
const behindSetting = `(?<==[^;\\n]{0,128};\\s{0,4}PWD=|${user}[^\\s;,&]{1,64}[\\s,&]{1,3}PWD=)`;
const beforeSetting = `(?=[^\\s;]{4,64};\\s{0,4}[A-Za-z][\\w ]{0,31}=|[^\\s;,&]{4,64}[\\s,&]{1,3}${user})`;
const odbcPassword = `PWD=(?!["'\x60]?(?:[./~%\\\\]|[A-Za-z]:[\\\\/]))(?:${behindSetting}|${beforeSetting})`;

/** Short ones, and those with a blank in them. */
const phrases = new Shapes({
  pem: "-----BEGIN [A-Z]|PuTTY-User-Key-File-\\d",
  password_in_text: `(?<![A-Za-z0-9])(?:(?:[Pp]assword|PASSWORD|[Pp]wd)=|${odbcPassword})[^\\s;&*<$[{]{4}`,
  secret_in_json:
    "[\"'](?:password|passwd|secret|client_?[Ss]ecret|access_?[Tt]oken|refresh_?[Tt]oken|api_?[Kk]ey|private_?[Kk]ey)\\\\{0,7}[\"']\\s?:\\s?\\\\{0,7}[\"'][^\"'*<$[{]{4}",
});

/** As long as the shortest word that is one of the keys, or stands beside one. */
const longWord = 15;

// Looks at the end of where a long word would have to be: most letters of prose are never looked at.
function hasLongWord(text: string): boolean {
  for (let end = longWord - 1; end < text.length; ) {
    let at = end;
    while (at > end - longWord && isOfWord(text.charCodeAt(at))) at--;
    if (at === end - longWord) return true;
    end = at + longWord;
  }
  return false;
}

/** Secrets are ASCII. */
const isOfWord = (code: number): boolean => code > 32 && code < 127;

// These have to be confirmed by a closer look, and there may be many candidates in one string.
// A URL with a password, a Basic header, a card number: told apart by their first character.
const doubtful =
  /:\/\/[^\s/?#:@]{0,128}:[^\s/?#@]{1,256}@|(?<!\w)[Bb]asic [A-Za-z0-9+/]{6,256}={0,2}(?!\w)|(?<![\w.-])[2-6](?:\d{13,15}|\d{3}[ .\u00a0-]\d{4}[ .\u00a0-]\d{4}[ .\u00a0-]\d{4}|\d{3}[ .\u00a0-]\d{6}[ .\u00a0-]\d{4,5})(?![\w-]|\.\d)/g;

export const shortestSecret = 11;
// What is shorter than this can only be one of a few shapes, which are cheaper to look for.
const shortestKey = 20;
const shortShape = /[Bb]asic |[:?&="']|\d{4}[ .\u00a0-]?\d{4}/;

/**
 * `isReference` is set under keys such as `order_id`: there a long number is an identifier, and
 * one in ten of those would pass for a card number by chance.
 */
export function secretValueKind(value: string, isReference: boolean): string | undefined {
  if (value.length < shortestSecret) return undefined;
  if (value.length < shortestKey && !shortShape.test(value)) return undefined;
  return (
    phrases.kindIn(value) ??
    keyKindIn(value) ??
    settingKindIn(value) ??
    doubtfulKind(value, isReference)
  );
}

const keyKindIn = (value: string): string | undefined =>
  hasLongWord(value) && hasMark(value) ? keys.kindIn(value) : undefined;

function doubtfulKind(value: string, isReference: boolean): string | undefined {
  doubtful.lastIndex = 0;
  for (let match = doubtful.exec(value); match !== null; match = doubtful.exec(value)) {
    const kind = confirm(match, isReference);
    if (kind !== undefined) return kind;
    // A candidate that was none may overlap the real one.
    doubtful.lastIndex = match.index + 1;
  }
  return undefined;
}

export function isCardNumber(digits: string): boolean {
  return cardPrefixAndLength.test(digits) && passesLuhn(digits);
}

function confirm(match: RegExpExecArray, isReference: boolean): string | undefined {
  const [text] = match;
  if (text.startsWith(":")) return blankPassword.test(text) ? undefined : "url_password";
  if (/^[Bb]/.test(text)) return holdsUserAndPassword(text) ? "basic_header" : undefined;
  if (!isCardNumber(text.replace(/[ .\u00a0-]/g, ""))) return undefined;
  const before = match.input.slice(Math.max(0, match.index - longestName), match.index);
  return (isReference && !namesCard(before)) || announcesThing(before) ? undefined : "card_number";
}

/** Of a number, in the text before it. */
const longestName = 48;

const blankPassword = /:(?:\*+|x{3,}|\$?\{[^}]*\}|<[^>]*>|\[[^\]]*\]|\$[A-Z_]+)@$/;

// Visa, Mastercard (both ranges), American Express, Discover, JCB, Diners Club, UnionPay.
const cardPrefixAndLength =
  /^(?:4\d{15}|5[1-5]\d{14}|2[2-7]\d{14}|3[47]\d{13}|6(?:011|5\d\d|4[4-9]\d|2\d\d)\d{12}|35\d{14}|3[068]\d{12})$/;

function passesLuhn(digits: string): boolean {
  let sum = 0;
  for (let i = 0; i < digits.length; i++) {
    const digit = digits.charCodeAt(digits.length - 1 - i) - 48;
    const doubled = i % 2 === 1 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0;
}

function holdsUserAndPassword(header: string): boolean {
  const digits = header.slice("Basic ".length).replace(/=+$/, "");
  // A last digit without a second one stands for nothing. Not Buffer: this runs in browsers, too.
  const decoded = atob(digits.length % 4 === 1 ? digits.slice(0, -1) : digits);
  return /^[\x20-\x7e]*:[\x20-\x7e]+$/.test(decoded);
}

// The words of a key's name, in small letters and without accents.

const wrappers = new Set(["value", "plain", "plaintext", "raw", "string", "encoded", "base64"]);

const capital = /[A-Z]/;
const ascii = /^[\0-\x7f]*$/;
export const isAscii = (text: string): boolean => ascii.test(text);

/** Not every crossed letter is one with an accent to Unicode. */
export const withoutAccents = (text: string): string =>
  text
    .normalize("NFKD")
    .replace(/[\u0300-\u036f]/g, "")
    .replace(/[łŁ]/g, "l")
    .replace(/ı/g, "i");

const separators = /[^a-z0-9]+/;

// Each step is skipped where it changes nothing: payloads with thousands of different keys exist.
export function wordsOf(key: string): string[] {
  const plain = isAscii(key) ? key : withoutAccents(key);
  const lower = capital.test(plain) ? withoutHumps(plain) : plain;
  const words = lower.split(separators);
  return words[0] === "" || words.at(-1) === "" ? words.filter((word) => word !== "") : words;
}

const withoutHumps = (key: string): string =>
  key
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .replace(/([A-Z])([A-Z][a-z])/g, "$1_$2")
    .toLowerCase();

// `secret_value` and `password_2` are still the secret.
export function unwrapped(words: readonly string[]): readonly string[] {
  let end = words.length;
  while (end > 1 && isWrapper(words[end - 1] ?? "")) end--;
  return end === words.length ? words : words.slice(0, end);
}

function isWrapper(word: string): boolean {
  return wrappers.has(word) || (endsInDigit(word) && /^\d+$/.test(word));
}

export function endsInDigit(word: string): boolean {
  const last = word.charCodeAt(word.length - 1);
  return last >= 48 && last <= 57;
}

// Most texts in payloads are a few plain words, and those are told at a glance: no secret and no embedded
// content has such a shape. All others are looked at closely.

/** A longer one is looked at closely just as quickly. */
const longest = 48;
/** With a full stop behind it, one letter less than the shortest word that is a secret. */
const longestWord = 14;
/** Groups of four may be a card number's. */
const longestNumber = 3;

const other = 0;
const letter = 1;
const digit = 2;
const gap = 3;

const kinds = new Uint8Array(128).fill(other);
const mark = (characters: string, kind: number) => {
  for (const character of characters) kinds[character.charCodeAt(0)] = kind;
};
mark("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", letter);
mark("0123456789", digit);
mark(" ,;.!?()", gap);

const shortestStamp = 20;
const uuidLength = 36;
const uuidOrStamp =
  /^(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d))$/;
const hyphen = 45;

/** Looked at closely these two cost the most, and they are everywhere. */
export function isUuidOrStamp(text: string): boolean {
  const { length } = text;
  if (length < shortestStamp || length > uuidLength) return false;
  return text.charCodeAt(length === uuidLength ? 8 : 4) === hyphen && uuidOrStamp.test(text);
}

const space = 32;
const fullStop = 46;
const letterC = 99;

/** False where it is in doubt. */
export function isPlainWords(text: string): boolean {
  if (text.length > longest) return false;
  let word = 0;
  let number = 0;
  let last = space;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    // Secrets are ASCII: everything beyond only parts words.
    const kind = code < 128 ? kinds[code] : gap;
    if (kind === gap) {
      // What follows "Basic " may be a password in Base64.
      if (word === 5 && last === letterC && code === space) return false;
      // Full stops may be a part of what follows "Bearer ": no more than one counts as a word's end.
      if (code === fullStop && last === fullStop) return false;
      word = 0;
      number = 0;
    } else {
      if (kind === other || last === fullStop || ++word > longestWord) return false;
      number = kind === digit ? number + 1 : 0;
      if (number > longestNumber) return false;
    }
    last = code;
  }
  return true;
}

// JSON numbers are read as doubles. One that would come out with other digits is refused, by its path:
// nobody wants a neighbour's invoice. Most bodies have no long number, and one regular expression says so.

/** Sixteen digits in a row, with a point among them or not, or an exponent that may be out of range. */
const suspicious = /\d(?:\.?\d){15}|\d[eE][+-]?\d{3}/;
const number = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
/** So many digits tell any two doubles apart. */
const mostDigits = 17;

/** Where the first one stands, such as `payload.amounts.0`; null: all are kept as they are. The text is JSON. */
export function findInexactNumber(text: string): string | null {
  return suspicious.test(text) ? search(text) : null;
}

interface Level {
  /** null: a list. */
  key: string | null;
  index: number;
}

function search(text: string): string | null {
  const levels: Level[] = [];
  for (let i = 0; i < text.length; i++) {
    const char = text[i] as string;
    const level = levels.at(-1);
    if (char === "{" || char === "[") levels.push({ key: char === "{" ? "" : null, index: 0 });
    else if (char === "}" || char === "]") levels.pop();
    else if (char === "," && level !== undefined) level.index++;
    else if (char === '"') {
      const end = endOfString(text, i);
      if (level !== undefined && level.key !== null && isKey(text, end))
        level.key = JSON.parse(text.slice(i, end + 1));
      i = end;
    } else if (char === "-" || (char >= "0" && char <= "9")) {
      number.lastIndex = i;
      const [token = char] = number.exec(text) ?? [];
      if (!isKept(token)) return pathOf(levels);
      i += token.length - 1;
    }
  }
  return null;
}

function endOfString(text: string, from: number): number {
  for (let end = from + 1; end < text.length; end++) {
    if (text[end] === "\\") end++;
    else if (text[end] === '"') return end;
  }
  return text.length;
}

const isKey = (text: string, end: number): boolean => {
  let next = end + 1;
  while (" \t\r\n".includes(text[next] ?? "-")) next++;
  return text[next] === ":";
};

const pathOf = (levels: readonly Level[]): string =>
  levels.map(({ key, index }) => (key === null ? index : key)).join(".");

/** A whole number keeps each digit. A fraction may be a double written out with up to 17 of them. */
function isKept(token: string): boolean {
  const value = Number(token);
  if (!Number.isFinite(value)) return false;
  const wanted = digitsOf(token);
  if (wanted === digitsOf(String(value))) return true;
  const count = wanted.indexOf("e");
  if (!/[.eE]/.test(token) || count > mostDigits) return false;
  return wanted === digitsOf(value.toPrecision(Math.max(1, count)));
}

/** The digits that count, and where the point stands among them: 12.50 and 1.25e1 are `125e2`. */
function digitsOf(text: string): string {
  const [mantissa = "", exponent = "0"] = text.replace(/^-/, "").toLowerCase().split("e");
  const [whole = "", fraction = ""] = mantissa.split(".");
  const all = whole + fraction;
  const digits = all.replace(/^0+/, "");
  const point = whole.length + Number(exponent) - (all.length - digits.length);
  const kept = digits.replace(/0+$/, "");
  return kept === "" ? "0" : `${kept}e${point}`;
}

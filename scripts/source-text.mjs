// Masks JavaScript and TypeScript text, so that a pattern sees code only: comments, regular
// expressions and the insides of strings become spaces. Offsets and lines stay as they were.

const tokens = {
  comment: /\/\/[^\n]*|\/\*[\s\S]*?\*\//y,
  string: /"(?:\\[\s\S]|[^"\\\n])*"|'(?:\\[\s\S]|[^'\\\n])*'/y,
  template: /[`}](?:\\[\s\S]|\$(?!\{)|[^\\`$])*(?:`|\$\{)/y,
  regex: /\/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/[a-z]*/y,
  word: /[\w$]+/y,
};
const keywordsBeforeRegex = new Set(
  "return typeof case in of delete void throw new await yield else do instanceof".split(" "),
);

/** Returns the masked code and every comment with its offset. */
export function maskSource(text) {
  const comments = [];
  const braces = [];
  let code = "";
  let previous = "";
  while (code.length < text.length) {
    const { kind, token } = nextToken(text, code.length, previous, braces);
    if (kind === "comment") comments.push({ at: code.length, text: token });
    else if (token.trim() !== "") previous = kind === "code" ? token : token.at(-1);
    if (token[0] === "}") braces.pop();
    if (kind === "template" && token.endsWith("{")) braces.push("template");
    if (token === "{") braces.push("block");
    code += mask(kind, token);
  }
  return { code, comments };
}

/** The line (from 1) on which an offset lies. */
export const lineAt = (text, offset) => text.slice(0, offset).split("\n").length;

function nextToken(text, at, previous, braces) {
  const char = text[at];
  const kinds = [];
  if (char === "`" || (char === "}" && braces.at(-1) === "template")) kinds.push("template");
  else if (char === '"' || char === "'") kinds.push("string");
  else if (char === "/") kinds.push("comment", ...(regexMayFollow(previous) ? ["regex"] : []));
  for (const kind of kinds) {
    const token = match(tokens[kind], text, at);
    if (token) return { kind, token };
  }
  if (at === 0 && text.startsWith("#!")) return { kind: "comment", token: text.split("\n", 1)[0] };
  return { kind: "code", token: match(tokens.word, text, at) ?? char };
}

function match(pattern, text, at) {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0];
}

// After a value a slash divides; elsewhere it opens a regular expression.
const regexMayFollow = (previous) =>
  keywordsBeforeRegex.has(previous) || !/^[\w$)\]"'`/]/.test(previous);

function mask(kind, token) {
  if (kind === "code") return token;
  const blank = token.replace(/[^\n]/g, " ");
  const quoted = kind === "string" || kind === "template";
  return quoted ? token[0] + blank.slice(1, -1) + token.at(-1) : blank;
}

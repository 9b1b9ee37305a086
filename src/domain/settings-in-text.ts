// Settings with a secret, as in .env, TOML and YAML files: one to a line, which holds nothing else. In prose
// such a line says something about a password ("Password: forgotten"), so the value must look like one.

import { nameVerdict } from "./sensitive-names.ts";
import { isStandIn } from "./stand-in.ts";

/** Each part ends where the next begins, so a line is read once. */
const setting =
  /[ \t]{0,200}(?:- |export |set )?["']?([A-Za-z_][\w.-]{0,63})["']?[ \t]{0,20}[=:][ \t]{0,20}(["']?)([^\s"']{6,256})\2[ \t]{0,20}[;,]?[ \t]{0,20}(?:#.*)?\r?(?:\n|$)/y;

/** Only these names are asked about closely. */
const secretName =
  /(?:passw(?:or)?d|passphrase|pass|pwd?|secret|token|(?:api|auth|private|secret|access|account|aes|signing|encryption|decryption|master|ssh|hmac|session|deploy|subscription)[_.-]?key|secret_key_base|kennwort|passwort|passe|wachtwoord)\d?$/i;
const kinds = new Set(["password", "secret", "token", "api_key", "private_key"]);

export function settingKindIn(text: string): string | undefined {
  if (!text.includes(":") && !text.includes("=")) return undefined;
  const known = new Map<string, string | undefined>();
  for (let start = 0; ; ) {
    const kind = settingKindAt(text, start, known);
    if (kind !== undefined) return kind;
    const end = text.indexOf("\n", start);
    if (end < 0) return undefined;
    start = end + 1;
  }
}

/** `known`: what the names of this text stand for; the lines of a list have the same. */
function settingKindAt(
  text: string,
  start: number,
  known: Map<string, string | undefined>,
): string | undefined {
  setting.lastIndex = start;
  const match = setting.exec(text);
  if (match === null) return undefined;
  const [, name = "", , value = ""] = match;
  if (!secretName.test(name) || !looksSecret(value)) return undefined;
  if (!known.has(name)) known.set(name, secretOf(name));
  const secret = known.get(name);
  if (secret === "password") return "password_in_text";
  return secret !== undefined && letter.test(value) ? "secret_in_text" : undefined;
}

function secretOf(name: string): string | undefined {
  // Where a shell stands.
  if (name === "PWD") return undefined;
  const { secret, answers } = nameVerdict(name);
  return secret !== undefined && !answers && kinds.has(secret) ? secret : undefined;
}

const letter = /[A-Za-z]/;
const digitOrSymbol = /[\d!@#$%^&*+=~?]/;
const onlyDigits = /^\d+$/;
/** Placeholders, variables, templates, tags, code, addresses and files. */
const pointing =
  /^(?:your[_-]|x{3}|\$[A-Za-z_{(]|[<{[%&*|>])|[()]|:\/\/|^[.~]{0,2}\/[\w.-]+\/|^[a-z]\w*\.[\w.]+$/i;
/** How a secret is made or kept, a version, or a length: `sha-256`, `base64`, `v1.2`, `8-character`. */
const measure =
  /^(?:(?:sha|aes|rsa|ed|base|argon|o?auth|pbkdf|bcrypt|scrypt|hmac|utf|v)[-_]?\d[\w.-]{0,8}|\d{1,3}[-+]?[a-z]+)$/i;

function looksSecret(value: string): boolean {
  const word = value.replace(/[.,;:!?]{1,3}$/, "");
  if (word.length < 6 || !digitOrSymbol.test(word)) return false;
  if (!letter.test(word)) return onlyDigits.test(word);
  return !pointing.test(word) && !measure.test(word) && !isStandIn(word);
}

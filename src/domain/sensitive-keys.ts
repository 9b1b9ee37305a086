// Tells from a key's name what may stand under it. A key is judged by its last words, because
// that is where English puts the thing itself: `reset_password` holds a password, `password_policy`
// and `token_id` do not. Spelling does not matter: accessToken, access-token, ACCESS_TOKEN.

import { embeddedKeyKind } from "./embedded-content.ts";
import { secretValueKind } from "./sensitive-values.ts";

export interface KeyVerdict {
  /** The kind of secret the name announces. */
  readonly secret: string | undefined;
  /** Numbers count as the secret too (a card number), or only digits do (a PIN). */
  readonly digits: "ignored" | "counted" | "required";
  /** Short answers are none: `pass` says how a test went as well as what somebody signs in with. */
  readonly answers: boolean;
  /** Strings deeper inside an object under this key count as the secret. */
  readonly deep: boolean;
  /** The kind of embedded content the name announces. */
  readonly embedded: string | undefined;
  /** The name says reference or description (`id`, `type`, `expires_at`). */
  readonly harmless: boolean;
  /** The name says identifier: a long number under it is no card number. */
  readonly identifier: boolean;
  /** The key is itself a secret, or too long to be shown. */
  readonly masked: boolean;
  readonly secretItself: string | undefined;
  /** The name may stand there, and announces nothing that may not. */
  readonly plain: boolean;
}

const nothing: KeyVerdict = Object.freeze({
  secret: undefined,
  digits: "ignored",
  answers: false,
  deep: false,
  embedded: undefined,
  harmless: false,
  identifier: false,
  masked: false,
  secretItself: undefined,
  plain: true,
});

const harmless: KeyVerdict = Object.freeze({ ...nothing, harmless: true });
const identifier: KeyVerdict = Object.freeze({ ...harmless, identifier: true });
const longNumber: KeyVerdict = Object.freeze({ ...nothing, identifier: true });

function secret(kind: string, more: Partial<KeyVerdict> = {}): KeyVerdict {
  return Object.freeze({ ...nothing, plain: false, secret: kind, deep: true, ...more });
}

const table: readonly (readonly [KeyVerdict, string])[] = [
  [
    secret("password", { digits: "counted" }),
    "password passwords passwd passwort kennwort senha contrasena pwd passphrase passcode pass_phrase pass_word pass_code " +
      "db_pass user_pass smtp_pass ftp_pass mail_pass admin_pass root_pass redis_pass " +
      "dbpass userpass smtppass ftppass mailpass adminpass rootpass dbpw rootpw db_pw user_pw admin_pw root_pw psw " +
      "password_hash password_digest password_salt password_confirmation password_confirm",
  ],
  [secret("secret"), "secret secrets clientsecret appsecret consumersecret webhooksecret"],
  [
    secret("token"),
    "token tokens accesstoken refreshtoken authtoken idtoken apitoken bearertoken sessiontoken " +
      "jwt jwts bearer",
  ],
  [secret("api_key"), "api_key api_keys apikey apikeys auth_key authkey"],
  [
    secret("private_key"),
    "private_key private_keys privatekey secret_key secretkey access_key accesskey signing_key " +
      "encryption_key decryption_key master_key ssh_key hmac_key session_key account_key deploy_key",
  ],
  [
    secret("authorization", { deep: false }),
    "authorization authorization_header auth_header authorization_code auth_code basic_auth",
  ],
  [secret("cookie"), "cookie cookies session_cookie cookie_header"],
  [secret("credentials"), "credential credentials creds"],
  [
    secret("recovery_code"),
    "recovery_code recovery_codes backup_code backup_codes seed_phrase mnemonic mnemonic_phrase",
  ],
  [
    secret("one_time_code", { digits: "counted" }),
    "otp otp_code totp totp_code mfa_code 2fa_code two_factor_code one_time_code one_time_password verification_code",
  ],
  [secret("pin", { digits: "required" }), "pin pin_code"],
  [
    secret("card_security_code", { digits: "required" }),
    "cvv cvv2 cvc cvc2 card_code security_code",
  ],
  [
    secret("card_number", { digits: "counted" }),
    "card_number cardnumber card_no cc_number ccnumber credit_card_no credit_card",
  ],
  [secret("bank_account", { digits: "counted" }), "iban ibans bank_account_number"],
  [
    secret("social_security_number", { digits: "counted" }),
    "ssn social_security_number social_security_no",
  ],
];

/** Behind another word these may be anything (`boarding_pass`). */
const alone = new Map<string, KeyVerdict>([
  ["pass", secret("password", { answers: true, deep: false })],
  ["pw", secret("password", { digits: "counted" })],
]);

const phrases = new Map<string, KeyVerdict>(
  table.flatMap(([verdict, names]) => names.split(" ").map((name) => [name, verdict] as const)),
);

// Cursors, fencing numbers and vocabulary are called tokens too.
const harmlessTokens = new Set(
  (
    "page next previous prev continuation pagination cursor sync delta skip resume change history " +
    "watch cancel cancellation fencing lock claim lease idempotency correlation stop eos bos pad unk " +
    "mask sep cls prompt completion input output total max min design color"
  ).split(" "),
);

const questions = new Set(
  "is has had needs requires require should can allow allows enable enabled disable show hide accept".split(
    " ",
  ),
);

const publicWords = new Set(["public", "publishable", "anon"]);

const identifierEndings = new Set("id ids uuid guid ref refs reference".split(" "));

const numberEndings = new Set("number numbers no nr num code".split(" "));

/** What is numbered like this is no card. */
const numbered = new Set(
  (
    "order invoice receipt customer client member contract policy case ticket booking reservation shipment parcel " +
    "package tracking delivery article part product item serial batch lot meter document purchase"
  ).split(" "),
);

const longNumbers = new Set(
  "barcode ean gtin upc isbn imei iccid serial sku waybill tracking reading".split(" "),
);

const harmlessEndings = new Set(
  (
    "type kind name version provider status state at on expires " +
    "expiry expiration ttl count length size issuer scope scopes algorithm alg hint policy arn label " +
    "last4 format source owner tenant user username email role created updated url uri path"
  ).split(" "),
);

const wrappers = new Set(["value", "plain", "plaintext", "raw", "string", "encoded", "base64"]);

const capital = /[A-Z]/;
const ascii = /^[\0-\x7f]*$/;
const separators = /[^a-z0-9]+/;

// Each step is skipped where it changes nothing: payloads with thousands of different keys exist.
function wordsOf(key: string): string[] {
  const plain = ascii.test(key) ? key : key.normalize("NFKD").replace(/[\u0300-\u036f]/g, "");
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
function unwrapped(words: readonly string[]): readonly string[] {
  let end = words.length;
  while (end > 1 && isWrapper(words[end - 1] ?? "")) end--;
  return end === words.length ? words : words.slice(0, end);
}

function isWrapper(word: string): boolean {
  return wrappers.has(word) || (endsInDigit(word) && /^\d+$/.test(word));
}

function endsInDigit(word: string): boolean {
  const last = word.charCodeAt(word.length - 1);
  return last >= 48 && last <= 57;
}

const phraseEndings = new Set([...phrases.keys()].map((phrase) => phrase.split("_").at(-1)));

function phraseVerdict(words: readonly string[]): KeyVerdict | undefined {
  const last = words.at(-1) ?? "";
  if (words.length === 1 && alone.has(last)) return alone.get(last);
  if (phraseEndings.has(last)) {
    for (let count = Math.min(4, words.length); count > 0; count--) {
      const found = phrases.get(words.slice(-count).join("_"));
      if (found !== undefined) return found;
    }
  }
  const bare = endsInDigit(last) ? last.replace(/\d{1,4}$/, "") : last;
  if (bare.includes("pass") && /(?:password|passwd|passphrase)$/.test(bare))
    return phrases.get("password");
  return bare === last ? undefined : phrases.get(bare);
}

/** Names that mean something to JavaScript itself. */
export const isForbiddenKey = (key: string): boolean =>
  key === "__proto__" || key === "constructor" || key === "prototype";

const forbidden: KeyVerdict = Object.freeze({ ...nothing, plain: false });

function nameVerdict(key: string): KeyVerdict {
  if (isForbiddenKey(key)) return forbidden;
  // Only the end of an overlong key is read: the work stays bounded, the last words decide.
  const all = wordsOf(key.slice(-96));
  const words = unwrapped(all);
  const last = words.at(-1) ?? "";
  const found = phraseVerdict(words);
  const asks = questions.has(words[0] ?? "");
  if (found !== undefined) {
    const cursor = last.startsWith("token") && harmlessTokens.has(words.at(-2) ?? "");
    return asks || cursor || words.some((word) => publicWords.has(word)) ? harmless : found;
  }
  const embedded = asks ? undefined : embeddedKeyKind(all);
  if (embedded !== undefined) return Object.freeze({ ...nothing, plain: false, embedded });
  if (identifierEndings.has(last)) return identifier;
  if (longNumbers.has(last)) return longNumber;
  if (numberEndings.has(last) && numbered.has(words.at(-2) ?? "")) return longNumber;
  return harmlessEndings.has(last) ? harmless : nothing;
}

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

const redacted = /^(?:[*•]+|[[<(](?:redacted|masked|filtered|removed|hidden)[\])>])$/i;
/** All but the first or last few digits of a number are blanked out. */
const blankedNumber = /^(?:[A-Z]{2}\d\d|\d{4,6})?[ -]?[*•]{2,}(?:[ -][*•]{2,}){0,5}[ -]?\d{0,4}$/;
const pointer =
  /^(?:\$\{[\w.:-]{1,100}\}|\{\{[ \w.:-]{1,100}\}\}|(?:vault|env|op|secret):[\w./:#-]{1,200}|arn:aws:(?:secretsmanager|ssm):[\w./:-]{1,200})$/;

/** A value that stands under a secret's name but only points at it, or was blanked out. */
export function isStandIn(value: string): boolean {
  if (value.length > 256) return false;
  return redacted.test(value) || blankedNumber.test(value) || pointer.test(value);
}

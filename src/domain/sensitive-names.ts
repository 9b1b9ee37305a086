// Tells from a key's name what may stand under it. A key is judged by its last words, because
// that is where English puts the thing itself: `reset_password` holds a password, `password_policy`
// and `token_id` do not. Spelling does not matter: accessToken, access-token, ACCESS_TOKEN.

import { embeddedKeyKind } from "./embedded-content.ts";
import { endsInDigit, isAscii, unwrapped, wordsOf } from "./key-words.ts";
import { numbersForeignThings, numbersThings } from "./number-names.ts";

export interface KeyVerdict {
  /** The kind of secret the name announces. */
  readonly secret: string | undefined;
  /** Numbers count as the secret too (a card number), or only digits do (a PIN; some are no postal code). */
  readonly digits: "ignored" | "counted" | "required" | "not_postal";
  /** Short answers are none: `pass` says how a test went as well as what somebody signs in with. */
  readonly answers: boolean;
  /** Plain words are none. */
  readonly words: boolean;
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
  words: false,
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
      "password_hash password_digest password_salt password_confirmation password_confirm " +
      "mot_de_passe motdepasse wachtwoord losenord haslo parola_d_ordine " +
      "passord adgangskode salasana heslo jelszo sifre geslo lozinka",
  ],
  // In Italian any word.
  [secret("password", { words: true, deep: false }), "parola"],
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
      "encryption_key decryption_key master_key ssh_key hmac_key session_key account_key deploy_key " +
      "aes_key subscription_key secret_key_base",
  ],
  [
    secret("authorization", { deep: false }),
    "authorization authorization_header auth_header authorization_code auth_code basic_auth",
  ],
  [secret("cookie"), "cookie cookies session_cookie cookie_header"],
  [secret("credentials"), "credential credentials creds"],
  [
    secret("recovery_code"),
    "recovery_code recovery_codes backup_code backup_codes seed_phrase recovery_phrase mnemonic mnemonic_phrase",
  ],
  [
    secret("one_time_code", { digits: "counted" }),
    "otp otp_code totp totp_code mfa_code 2fa_code two_factor_code one_time_code one_time_password verification_code",
  ],
  [secret("security_answer"), "security_answer security_answers"],
  [
    secret("pin", { digits: "required" }),
    "pin card_pin_code atm_pin_code bank_pin_code account_pin_code user_pin_code login_pin_code " +
      "sim_pin_code access_pin_code security_pin_code",
  ],
  // In India a PIN is a postal code, too.
  [
    secret("pin", { digits: "not_postal" }),
    "pin_code shipping_pin billing_pin delivery_pin pickup_pin postal_pin address_pin area_pin",
  ],
  [
    secret("card_security_code", { digits: "required" }),
    "cvv cvv2 cvc cvc2 card_code security_code",
  ],
  [
    secret("card_number", { digits: "counted" }),
    "card_number cardnumber card_no cc_number ccnumber credit_card_no credit_card " +
      "kartennummer kreditkartennummer",
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

/** At the end of a key: few of these scripts part their words. */
const foreignPassword =
  /(?:пароль|密码|密碼|パスワード|비밀번호|סיסמה|كلمة[ _-]?المرور|κωδικ[όο][ςσ][ _-]?πρ[όο]σβαση[ςσ])$/;

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

const harmlessEndings = new Set(
  (
    "type kind name version provider status state at on expires " +
    "expiry expiration ttl count length size issuer scope scopes algorithm alg hint policy arn label " +
    "last4 format source owner tenant user username email role created updated url uri path"
  ).split(" "),
);

const phraseEndings = new Set([...phrases.keys()].map((phrase) => phrase.split("_").at(-1)));

const foreignVerdict = (key: string): KeyVerdict | undefined =>
  foreignPassword.test(key.normalize("NFKC").toLowerCase()) ? phrases.get("password") : undefined;

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

export function nameVerdict(key: string): KeyVerdict {
  if (isForbiddenKey(key)) return forbidden;
  // Only the end of an overlong key is read: the work stays bounded, the last words decide.
  const all = wordsOf(key.slice(-96));
  const words = unwrapped(all);
  const last = words.at(-1) ?? "";
  const found = phraseVerdict(words) ?? (isAscii(key) ? undefined : foreignVerdict(key));
  const asks = questions.has(words[0] ?? "");
  if (found !== undefined) {
    const cursor = last.startsWith("token") && harmlessTokens.has(words.at(-2) ?? "");
    return asks || cursor || words.some((word) => publicWords.has(word)) ? harmless : found;
  }
  const embedded = asks ? undefined : embeddedKeyKind(all);
  if (embedded !== undefined) return Object.freeze({ ...nothing, plain: false, embedded });
  if (identifierEndings.has(last)) return identifier;
  if (numbersThings(words) || (!isAscii(key) && numbersForeignThings(key))) return longNumber;
  return harmlessEndings.has(last) ? harmless : nothing;
}

// Tells a secret by its shape, wherever it stands in a string. The regular expressions run in
// linear time: a shape either has a bounded length or may only begin where a run of its own
// characters begins, so no character is read more than a few times.

class Shapes {
  readonly #kinds: readonly string[];
  readonly #any: RegExp;

  constructor(shapes: Readonly<Record<string, string>>) {
    this.#kinds = Object.keys(shapes);
    this.#any = new RegExp(this.#kinds.map((kind) => `(${shapes[kind]})`).join("|"));
  }

  kindIn(value: string): string | undefined {
    const match = this.#any.exec(value);
    return match === null ? undefined : this.#kinds[match.indexOf(match[0], 1) - 1];
  }
}

/** Short ones, and those with a blank in them. */
const phrases = new Shapes({
  pem: "-----BEGIN [A-Z]",
  password_in_text: "(?<![A-Za-z0-9])(?:[Pp]assword|PASSWORD|[Pp]wd)=[^\\s;&*<$[{]{4}",
  secret_in_json:
    "[\"'](?:password|passwd|secret|client_?[Ss]ecret|access_?[Tt]oken|refresh_?[Tt]oken|api_?[Kk]ey|private_?[Kk]ey)[\"']\\s?:\\s?[\"'][^\"'*<$[{]{4}",
});

/** These have a long word of their own, or before a long word. */
const keys = new Shapes({
  // Signed, unsigned, or encrypted: then what follows the header is no JSON, and there are five parts.
  jwt: "(?<![\\w-])eyJ[\\w-]{8,}\\.(?:eyJ[\\w-]{8,}\\.|[\\w-]*\\.[\\w-]{16,}\\.[\\w-]+\\.[\\w-]{22})",
  url_credential:
    "[?&#](?:access_token|refresh_token|id_token|api_?key|client_secret|password|token|sig|X-Amz-Signature|X-Goog-Signature|Signature)=[\\w%.~+\\/-]{12}",
  bearer_header: "(?<!\\w)[Bb]earer (?=[\\w.~+\\/-]{0,60}\\d)[\\w.~+\\/-]{16}",
  aws_key: "(?<![A-Za-z0-9])A(?:KIA|SIA)[A-Z0-9]{16}(?![A-Za-z0-9])",
  github_token: "gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{22}",
  gitlab_token: "gl(?:pat|ptt|dt|rt|cbt)-[\\w-]{20}",
  slack_token: "xox[abceoprs]-[\\w-]{10}|xapp-\\d-[\\w-]{10}",
  slack_webhook: "hooks\\.slack\\.com\\/services\\/T\\w{6}",
  stripe_key: "(?<!\\w)[rs]k_(?:live|test)_[A-Za-z0-9]{16}|whsec_[A-Za-z0-9+\\/]{24}",
  google_key: "AIza[\\w-]{35}|GOCSPX-[\\w-]{28}|(?<!\\w)ya29\\.[\\w-]{20}",
  twilio_key: "(?<!\\w)SK[0-9a-f]{32}(?!\\w)",
  sendgrid_key: "(?<!\\w)SG\\.[\\w-]{20,24}\\.[\\w-]{39}",
  mailgun_key: "(?<![\\w-])key-[0-9a-f]{32}(?!\\w)",
  npm_token: "(?<!\\w)npm_[A-Za-z0-9]{36}",
  pypi_token: "pypi-AgE[\\w-]{20}",
  openai_key: "(?<![\\w-])sk-(?:[A-Za-z0-9]{20}|(?:proj|ant|svcacct|admin)-[\\w-]{20})",
  shopify_token: "shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}",
  digitalocean_token: "do[opr]_v1_[0-9a-f]{64}",
  huggingface_token: "(?<!\\w)hf_[A-Za-z0-9]{30}",
  telegram_token: "(?<!\\w)\\d{8,10}:AA[\\w-]{33}",
  azure_key: "Account[Kk]ey=[A-Za-z0-9+\\/]{40}|SharedAccessKey=[A-Za-z0-9+\\/]{20}",
  age_key: "AGE-SECRET-KEY-1",
  millrace_key: "mrk_[0-9a-f]{32}_[0-9a-f]{32}",
  // Square, Vault, Docker, Grafana, Atlassian, Databricks, HubSpot, Brevo, Razorpay, New Relic, Postman, Linear,
  // Notion, Supabase, Doppler: a prefix that nothing else has.
  service_key:
    "(?<![\\w-])(?:sq0[a-z]{3}-|hvs\\.|dckr_[a-z]{3}_|gl(?:sa|c)_|ATATT3|dapi(?=[0-9a-f]{32})|pat-(?:na|eu)\\d-|xkeysib-|rzp_(?:live|test)_|NRAK-|PMAK-|lin_api_|ntn_|sbp_|dp\\.[a-z]{2}\\.)[\\w-]{14}",
});

/** As long as the shortest of them. Prose has few such words, and need not be searched for each of them. */
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
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const shortShape = /:\/\/|[Bb]asic |[?&="']|\d{4}[ .\u00a0-]?\d{4}/;

/**
 * `isReference` is set under keys such as `order_id`: there a long number is an identifier, and
 * one in ten of those would pass for a card number by chance.
 */
export function secretValueKind(value: string, isReference: boolean): string | undefined {
  if (value.length < shortestSecret) return undefined;
  if (value.length === 36 && uuid.test(value)) return undefined;
  if (value.length < shortestKey && !shortShape.test(value)) return undefined;
  return (
    phrases.kindIn(value) ??
    (hasLongWord(value) ? keys.kindIn(value) : undefined) ??
    doubtfulKind(value, isReference)
  );
}

function doubtfulKind(value: string, isReference: boolean): string | undefined {
  doubtful.lastIndex = 0;
  for (let match = doubtful.exec(value); match !== null; match = doubtful.exec(value)) {
    const kind = confirm(match[0], isReference);
    if (kind !== undefined) return kind;
    // A candidate that was none may overlap the real one.
    doubtful.lastIndex = match.index + 1;
  }
  return undefined;
}

export function isCardNumber(digits: string): boolean {
  return cardPrefixAndLength.test(digits) && passesLuhn(digits);
}

function confirm(text: string, isReference: boolean): string | undefined {
  if (text.startsWith(":")) return blankPassword.test(text) ? undefined : "url_password";
  if (/^[Bb]/.test(text)) return holdsUserAndPassword(text) ? "basic_header" : undefined;
  const isCard = !isReference && isCardNumber(text.replace(/[ .\u00a0-]/g, ""));
  return isCard ? "card_number" : undefined;
}

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

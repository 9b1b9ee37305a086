// Keys and tokens of services: each has a long word of its own, or stands before one, and some letters that are its
// mark. Few other texts have one of these, so most are never searched for all shapes. Linear, as in sensitive-values.ts.

import { Shapes } from "./shapes.ts";

/** By kind: the marks, one of which every such text has, and the shape. */
export const keyShapes: Readonly<Record<string, readonly [marks: string, shape: string]>> = {
  // Signed, unsigned, or encrypted: then what follows the header is no JSON, and there are five parts.
  jwt: [
    "eyJ",
    "(?<![\\w-])eyJ[\\w-]{8,}\\.(?:eyJ[\\w-]{8,}\\.|[\\w-]*\\.[\\w-]{16,}\\.[\\w-]+\\.[\\w-]{22})",
  ],
  url_credential: [
    "token= Token= jwt= key= secret= password= sig= nature=",
    "[?&#](?:(?:(?:access|refresh|id|auth|session|invite|login|magic|reset|confirmation|verification)_token|sessionToken|api_?key|client_secret|password|token|sig|X-Amz-Signature|X-Goog-Signature|Signature)=[\\w%.~+\\/-]{12}|(?:secret|jwt)=(?=[\\w%.~+\\/-]{0,60}\\d)[\\w%.~+\\/-]{12})|otpauth:\\/\\/[^\\s?]{0,128}\\?(?:[^\\s=&]{1,32}=[^\\s=&]{0,128}&){0,6}secret=[A-Za-z2-7]{8}",
  ],
  bearer_header: ["earer", "(?<!\\w)[Bb]earer (?=[\\w.~+\\/-]{0,60}\\d)[\\w.~+\\/-]{16}"],
  api_key_header: [
    "Key: key: KEY: Token: token: ization:",
    "(?:[Aa][Pp][Ii]-(?:[Kk]ey|KEY)|[Xx]-(?:[Aa]uth|[Aa]ccess|[Ss]ession|[Vv]ault|[Ff]unctions|[Ss]ubscription)-(?:[Tt]oken|[Kk]ey)): ?(?=[\\w.~+\\/-]{0,60}\\d)[\\w.~+\\/-]{16}|[Aa]uthorization: ?(?:[Tt]oken|[Aa]pi-?[Kk]ey) [\\w.~+\\/-]{16}",
  ],
  cookie_header: ["ookie:", "[Cc]ookie: ?[\\w.-]{1,64}=[^\\s;*<$[{]{8}"],
  // As in files of settings and in form bodies. Pages are turned with tokens, too.
  secret_in_text: [
    "SECRET TOKEN _authToken _KEY IKEY SKEY EKEY client_secret access_key secret_key private_key",
    "(?:SECRET|(?<!PAGE_|NEXT_|SYNC_)TOKEN|_authToken|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|SECRET_?KEY|client_secret|secret_access_key|secret_key|private_key)\\s?=\\s?[\"']?(?=[\\w+\\/.~-]{0,60}\\d)[\\w+\\/.~-]{10}",
  ],
  // Of PostgreSQL and MySQL; others are phrases.
  password_in_text: ["PGPASSWORD= _PWD=", "(?:PGPASSWORD|_PWD)=[^\\s;&*<$[{]{4}"],
  aws_key: ["AKIA ASIA", "(?<![A-Za-z0-9])A(?:KIA|SIA)[A-Z0-9]{16}(?![A-Za-z0-9])"],
  github_token: [
    "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
    "gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{22}",
  ],
  gitlab_token: ["glpat- glptt- gldt- glrt- glcbt-", "gl(?:pat|ptt|dt|rt|cbt)-[\\w-]{20}"],
  slack_token: ["xox xapp-", "xox[abceoprs]-[\\w-]{10}|xapp-\\d-[\\w-]{10}"],
  slack_webhook: ["hooks.slack", "hooks\\.slack\\.com\\/services\\/T\\w{6}"],
  discord_webhook: [
    "api/webhooks",
    "discord(?:app)?\\.com\\/api\\/webhooks\\/\\d{17,20}\\/[\\w-]{30}",
  ],
  stripe_key: [
    "k_live_ k_test_ whsec_",
    "(?<!\\w)[rs]k_(?:live|test)_[A-Za-z0-9]{16}|whsec_[A-Za-z0-9+\\/]{24}",
  ],
  google_key: [
    "AIza GOCSPX- ya29. 1//0",
    "AIza[\\w-]{35}|GOCSPX-[\\w-]{28}|(?<!\\w)(?:ya29\\.[\\w-]{20}|1\\/\\/0[\\w-]{40})",
  ],
  twilio_key: [
    "SK0 SK1 SK2 SK3 SK4 SK5 SK6 SK7 SK8 SK9 SKa SKb SKc SKd SKe SKf",
    "(?<!\\w)SK[0-9a-f]{32}(?!\\w)",
  ],
  sendgrid_key: ["SG.", "(?<!\\w)SG\\.[\\w-]{20,24}\\.[\\w-]{39}"],
  mailgun_key: ["key-", "(?<![\\w-])key-[0-9a-f]{32}(?!\\w)"],
  npm_token: ["npm_", "(?<!\\w)npm_[A-Za-z0-9]{36}"],
  pypi_token: ["pypi-", "pypi-AgE[\\w-]{20}"],
  openai_key: ["sk-", "(?<![\\w-])sk-(?:[A-Za-z0-9]{20}|(?:proj|ant|svcacct|admin)-[\\w-]{20})"],
  shopify_token: ["shpat_ shpca_ shppa_ shpss_", "shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"],
  digitalocean_token: ["v1_", "do[opr]_v1_[0-9a-f]{64}"],
  huggingface_token: ["hf_", "(?<!\\w)hf_[A-Za-z0-9]{30}"],
  telegram_token: [":AA", "(?<!\\w)\\d{8,10}:AA[\\w-]{33}"],
  azure_key: [
    "7Q~ 8Q~ Key= key=",
    "(?<=\\w{3})[78]Q~[\\w.~-]{31}|Account[Kk]ey=[A-Za-z0-9+\\/]{40}|SharedAccessKey=[A-Za-z0-9+\\/]{20}",
  ],
  age_key: ["AGE-SECRET", "AGE-SECRET-KEY-1"],
  millrace_key: ["mrk_", "mrk_[0-9a-f]{32}_[0-9a-f]{32}"],
  // One long word of a certain length or alphabet: Groq, xAI, Perplexity, Replicate, Figma, PlanetScale, Fly.io,
  // Sentry, RubyGems, Notion, Mailchimp, Cloudflare, Square, Terraform.
  long_service_key: [
    "gsk_ xai- pplx- r8_ figd_ pscale_ fm1_ fm2_ sntrys_ sntryu_ rubygems_ secret_ -us v1.0- EAAA atlasv1.",
    "(?<![\\w-])(?:gsk_[A-Za-z0-9]{40}|xai-[A-Za-z0-9]{40}|pplx-[A-Za-z0-9]{40}|r8_[A-Za-z0-9]{37}|figd_[\\w-]{30}|pscale_[a-z]{2,5}_[\\w-]{30}|fm[12]_[\\w+\\/=]{60}|sntry[su]_[\\w+\\/=-]{40}|rubygems_[0-9a-f]{48}|secret_[A-Za-z0-9]{43}|[0-9a-f]{32}-us\\d{1,2}(?!\\w)|v1\\.0-[0-9a-f]{24}-[0-9a-f]{100}|EAAA[\\w-]{60})|\\.atlasv1\\.[\\w-]{40}",
  ],
  // A prefix that nothing else has: Square, Vault, Docker, Grafana, Atlassian, Databricks, HubSpot, Brevo, Razorpay,
  // New Relic, Postman, Linear, Notion, Supabase, Doppler.
  service_key: [
    "sq0 hvs. dckr_ glsa_ glc_ ATATT3 dapi pat-na pat-eu xkeysib- rzp_ NRAK- PMAK- lin_api_ ntn_ sbp_ dp.",
    "(?<![\\w-])(?:sq0[a-z]{3}-|hvs\\.|dckr_[a-z]{3}_|gl(?:sa|c)_|ATATT3|dapi(?=[0-9a-f]{32})|pat-(?:na|eu)\\d-|xkeysib-|rzp_(?:live|test)_|NRAK-|PMAK-|lin_api_|ntn_|sbp_|dp\\.[a-z]{2}\\.)[\\w-]{14}",
  ],
};

export const keys = new Shapes(
  Object.fromEntries(Object.entries(keyShapes).map(([kind, [, shape]]) => [kind, shape])),
);

/** By five bits of each of its last three letters. */
const marks = new Map<number, string[]>();
const mayEndMark = new Uint8Array(1 << 15);

const last3 = (before: number, code: number) => ((before << 5) | (code & 31)) & 0x7fff;

for (const mark of Object.values(keyShapes).flatMap(([some]) => some.split(" "))) {
  let last = 0;
  for (let i = 0; i < mark.length; i++) last = last3(last, mark.charCodeAt(i));
  mayEndMark[last] = 1;
  marks.set(last, [...(marks.get(last) ?? []), mark]);
}

export function hasMark(text: string): boolean {
  let last = 0;
  for (let i = 0; i < text.length; i++) {
    last = last3(last, text.charCodeAt(i));
    if (mayEndMark[last] === 1 && endsMark(text, i + 1, last)) return true;
  }
  return false;
}

const endsMark = (text: string, end: number, last: number): boolean =>
  marks.get(last)?.some((mark) => text.endsWith(mark, end)) === true;

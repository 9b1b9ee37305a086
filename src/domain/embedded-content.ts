// Tells content that belongs into a store of its own (mail bodies, documents, files), by the name
// of its key or by the shape of the text. A job carries the reference to it.

const mailBodies =
  "email_body mail_body body_html html_body body_text text_body body_plain plain_body raw_email " +
  "raw_mail raw_message message_body mime_message mime_body email_content mail_content email_html email_text";

const documentTexts =
  "document_text document_content document_body document_html doc_text ocr_text extracted_text " +
  "full_text page_text pdf_text pdf_content file_content file_contents file_text file_body " +
  "attachment_content attachment_text attachment_body html_content transcript_text";

const blobs =
  "file_data file_bytes file_base64 attachment_data attachment_bytes image_data image_bytes " +
  "image_base64 pdf_data pdf_bytes document_data document_bytes document_base64 content_bytes " +
  "audio_data video_data blob_data attachment_base64 pdf_base64 content_base64 audio_base64";

const keyPhrases = new Map<string, string>([
  ...mailBodies.split(" ").map((name) => [name, "mail_body"] as const),
  ...documentTexts.split(" ").map((name) => [name, "document_text"] as const),
  ...blobs.split(" ").map((name) => [name, "file_content"] as const),
]);

const keyEndings = new Set([...keyPhrases.keys()].map((phrase) => phrase.split("_").at(-1)));

export function embeddedKeyKind(words: readonly string[]): string | undefined {
  const last = words.at(-1);
  if (last === "html" || last === "eml") return "mail_body";
  if (last === undefined || !keyEndings.has(last)) return undefined;
  return keyPhrases.get(`${words.at(-2) ?? ""}_${last}`);
}

const shortestDocument = 16;
const shortestEmbedded = 24;
const shortestBlob = 512;
const shortestHexBlob = 1_024;
const shortestProse = 4_096;
/** In scripts that write no blanks between words; each letter stands for more, and takes three bytes. */
const shortestUnspacedProse = 2_048;
const sampleLength = 1_024;

export function embeddedValueKind(value: string): string | undefined {
  if (value.length < shortestDocument) return undefined;
  if (value.length < shortestEmbedded) return shortDocumentKind(value);
  const first = value.charCodeAt(0);
  if ((first === 100 || first === 68) && dataUri.test(value)) return "data_uri";
  const mayBeFile = first === 37 || first === 123 || first <= 32 || first === byteOrderMark;
  if (mayBeFile && startsLikeFile.test(value)) return "file_content";
  if (startsLikeHeader.test(value) && isMailMessage(value)) return "mail_message";
  if (value.includes("<") && htmlDocument.test(value)) return "html_document";
  if (value.length < shortestBlob) return undefined;
  return longValueKind(value);
}

function shortDocumentKind(value: string): string | undefined {
  if (/^\s{0,8}\{\\rtf\d/.test(value)) return "file_content";
  return /^\s{0,8}<(?:!doctype html|html)[\s>]/i.test(value) ? "html_document" : undefined;
}

const dataUri = /^data:[\w.+/-]{0,100}(?:;[\w=.-]{1,60}){0,4};base64,/i;
const startsLikeHeader = /^[A-Za-z][A-Za-z-]{1,40}: /;
const byteOrderMark = 0xfeff;
const startsLikeFile = /^\s{0,64}(?:%PDF-\d|\{\\rtf\d)/;
const htmlDocument = /<(?:!doctype html|html[\s>]|body[\s>]|head>)/i;
const mailHeader =
  /^(from|to|cc|subject|date|received|return-path|reply-to|mime-version|message-id|content-type|delivered-to|dkim-signature): ?\S/gim;

const headersOfMailOnly = new Set(
  "received return-path mime-version message-id content-type delivered-to dkim-signature".split(
    " ",
  ),
);

// Three different mail headers at the top make a message, if there is an address or one that only mails have;
// a note that opens with "To: " does not, and an itinerary has "From: ", "To: " and "Date: ", too.
function isMailMessage(value: string): boolean {
  const top = value.slice(0, 4_096);
  const names = new Set<string>();
  for (const match of top.matchAll(mailHeader)) names.add((match[1] ?? "").toLowerCase());
  if (names.size < 3) return false;
  return top.includes("@") || [...names].some((name) => headersOfMailOnly.has(name));
}

const digit = 1;
const hexLower = 2;
const hexUpper = 4;
const otherLower = 8;
const otherUpper = 16;
const sign = 32;
const lineEnd = 64;
const lower = hexLower | otherLower;
const upper = hexUpper | otherUpper;

/** Of each character that Base64 is written with, line ends among them. */
const letterKinds = new Uint8Array(128);
for (const [kind, letters] of [
  [digit, "0123456789"],
  [hexLower, "abcdef"],
  [hexUpper, "ABCDEF"],
  [otherLower, "ghijklmnopqrstuvwxyz"],
  [otherUpper, "GHIJKLMNOPQRSTUVWXYZ"],
  [sign, "+/_-"],
  [lineEnd, "\r\n"],
] as const)
  for (const letter of letters) letterKinds[letter.charCodeAt(0)] = kind;

const endOfBase64 = /^(?:={1,2}\s*|[ \t]+)?$/;

/** Which kinds of letters it has, if it has none but those of Base64; most texts end this at their first blank. */
function base64Kinds(value: string): number {
  let kinds = 0;
  let end = 0;
  for (; end < value.length; end++) {
    const code = value.charCodeAt(end);
    const kind = code < 128 ? (letterKinds[code] ?? 0) : 0;
    if (kind === 0) break;
    kinds |= kind;
  }
  if (end === value.length) return kinds;
  return end > 0 && endOfBase64.test(value.slice(end)) ? kinds | sign : 0;
}

/** As `xxd` and `hexdump` write it, or byte by byte with the same character between. Addresses have fewer to a line. */
const hexDump =
  /^(?:[0-9A-Fa-f]{7,8}:? {1,2}(?:[0-9A-Fa-f]{2,4} {1,2}){8}|[0-9A-Fa-f]{2}([ :-])[0-9A-Fa-f]{2}(?:\1[0-9A-Fa-f]{2}){8}(?:(?:\1|\1?\r?\n)[0-9A-Fa-f]{2}){190})/;

function longValueKind(value: string): string | undefined {
  const kinds = base64Kinds(value);
  if (kinds !== 0) {
    if (isList(value)) return undefined;
    if ((kinds & (otherLower | otherUpper | sign)) === 0) {
      return value.length >= shortestHexBlob && varies(value, 12) ? "hex_blob" : undefined;
    }
    const isMixed = (kinds & digit) !== 0 && (kinds & lower) !== 0 && (kinds & upper) !== 0;
    return isMixed && varies(value, 32) ? "base64_blob" : undefined;
  }
  if (hexDump.test(value) && varies(value, 12)) return "hex_blob";
  if (value.length > shortestProse && readsLikeProse(value)) return "long_text";
  return value.length > shortestUnspacedProse && isUnspacedProse(value) ? "long_text" : undefined;
}

/** Content is wrapped no sooner. */
const shortestWrap = 60;
/** Of SHA-256 to SHA-512 in hexadecimal digits, which are no shorter than that. */
const hashLengths = new Set([64, 96, 128]);

/** Ids or hashes, one to a line. */
function isList(value: string): boolean {
  if (!value.includes("\n")) return false;
  const lines = value.trimEnd().split(/\r?\n/);
  if (lines.every((line) => line.length < shortestWrap)) return true;
  const length = lines[0]?.length ?? 0;
  return hashLengths.has(length) && lines.every((line) => isHash(line, length));
}

const isHash = (line: string, length: number): boolean =>
  line.length === length && /^[0-9A-Fa-f]+$/.test(line);

// A repeated character or a padded number is long, but it is no content.
function varies(value: string, atLeast: number): boolean {
  const seen = new Set<number>();
  for (let i = 0; i < value.length && i < sampleLength; i++) {
    const code = value.charCodeAt(i);
    if (code !== value.charCodeAt(i - 1) && seen.add(code).size >= atLeast) return true;
  }
  return false;
}

function readsLikeProse(value: string): boolean {
  return countOf(/\s/g, value) >= sampleLength / 20;
}

// Thai, Lao, Myanmar and Khmer; kana and Chinese characters.
const unspacedLetters = /[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]/g;

const isUnspacedProse = (value: string): boolean =>
  countOf(unspacedLetters, value) >= sampleLength / 2;

const countOf = (what: RegExp, value: string): number =>
  value.slice(0, sampleLength).match(what)?.length ?? 0;

import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { MillraceError } from "../domain/errors.ts";
import {
  deliveryHeader,
  formatSignature,
  parseSignature,
  signatureHeader,
  signedText,
} from "../domain/webhook-signature.ts";

/** What signs, and all that is stored of a secret. */
export const signingKeyOf = (secret: string): Buffer =>
  createHash("sha256").update(secret).digest();

/** Headers of one attempt: the delivery's id, and one signature by each key. */
export function signatureHeaders(
  deliveryId: string,
  body: string,
  { keys, now }: { readonly keys: readonly Buffer[]; readonly now: Date },
): Record<string, string> {
  const timestamp = Math.floor(now.getTime() / 1000);
  const text = signedText(deliveryId, timestamp, body);
  const signatures = keys.map((key) => sign(key, text).toString("hex"));
  return {
    [deliveryHeader]: deliveryId,
    [signatureHeader]: formatSignature({ timestamp, signatures }),
  };
}

const sign = (key: Buffer, text: string) => createHmac("sha256", key).update(text).digest();

export interface VerifyWebhookOptions {
  /** One, or both while secrets are being changed. */
  readonly secret: string | readonly string[];
  /** As they came: Node's `request.headers`, or the `Headers` of a fetch handler. */
  readonly headers:
    | Readonly<Record<string, string | readonly string[] | undefined>>
    | { get(name: string): string | null };
  /** As it came, before anybody has parsed it. */
  readonly body: string | Uint8Array;
  /** How far the sender's clock may be from this one, and how old a request may be. */
  readonly toleranceSeconds?: number;
  readonly now?: Date;
}

/** What a receiver is told. `deliveryId` is the same for every attempt: what has it twice, is one. */
export interface VerifiedWebhook {
  readonly deliveryId: string;
  readonly id: string;
  readonly kind: string;
  readonly at: string;
  readonly tenant: string | null;
  readonly queue: string | null;
  readonly data: Readonly<Record<string, unknown>>;
}

/** For receivers: what the request says, if it comes from Millrace; throws WEBHOOK_SIGNATURE_INVALID. */
export function verifyWebhook(options: VerifyWebhookOptions): VerifiedWebhook {
  if (typeof options?.headers !== "object" || options.headers === null)
    throw invalid("its headers are missing or malformed");
  const isBody = typeof options.body === "string" || options.body instanceof Uint8Array;
  if (!isBody) throw invalid("its body is missing, or was parsed already");
  const { secret, toleranceSeconds = 300, now = new Date() } = options;
  const secrets = [secret].flat();
  if (secrets.some((one) => typeof one !== "string"))
    throw new MillraceError("OPTION_INVALID", "A webhook is verified with its secret, or several.");
  const deliveryId = headerOf(options.headers, deliveryHeader);
  const signature = parseSignature(headerOf(options.headers, signatureHeader));
  if (deliveryId === "" || signature === null)
    throw invalid("its headers are missing or malformed");
  const body =
    typeof options.body === "string" ? options.body : Buffer.from(options.body).toString();
  const text = signedText(deliveryId, signature.timestamp, body);
  const given = signature.signatures.map((hex) => Buffer.from(hex, "hex"));
  const wanted = secrets.map((one) => sign(signingKeyOf(one), text));
  // Every pair is compared, so that the time taken says nothing about which one fits.
  const fits = wanted.flatMap((one) => given.map((other) => timingSafeEqual(one, other)));
  if (!fits.includes(true)) throw invalid("it was not signed with this secret");
  const age = Math.abs(now.getTime() / 1000 - signature.timestamp);
  if (age > toleranceSeconds) throw invalid("it is too old, or from a clock that is wrong");
  const { delivery_id: _, ...told } = JSON.parse(body);
  return { deliveryId, ...told };
}

function headerOf(headers: VerifyWebhookOptions["headers"], name: string): string {
  if (typeof headers.get === "function") return headers.get(name) ?? "";
  const entries = Object.entries(headers).filter(([key]) => key.toLowerCase() === name);
  const value: unknown = entries.length === 1 ? entries[0]?.[1] : undefined;
  return typeof value === "string" ? value : "";
}

const invalid = (why: string) =>
  new MillraceError("WEBHOOK_SIGNATURE_INVALID", `The webhook's request is refused: ${why}.`);

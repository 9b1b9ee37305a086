// What is signed, and how the signature travels. The HMAC itself is handed in.

export const signatureHeader = "millrace-signature";
export const deliveryHeader = "millrace-delivery";

export interface Signature {
  /** Unix seconds, by the sender's clock. */
  readonly timestamp: number;
  /** One per secret: two while secrets are being changed. */
  readonly signatures: readonly string[];
}

/** The delivery's id is signed too: a replay under another id would count twice. */
export const signedText = (deliveryId: string, timestamp: number, body: string): string =>
  `${deliveryId}.${timestamp}.${body}`;

export const formatSignature = ({ timestamp, signatures }: Signature): string =>
  [`t=${timestamp}`, ...signatures.map((signature) => `v1=${signature}`)].join(",");

const mostSignatures = 5;

export function parseSignature(header: string): Signature | null {
  const parts = header.split(",", mostSignatures + 1).map((part) => part.trim());
  const time = /^t=(\d{1,12})$/.exec(parts[0] ?? "")?.[1];
  const signatures = parts.slice(1).flatMap((part) => /^v1=([0-9a-f]{64})$/.exec(part)?.[1] ?? []);
  return time === undefined || signatures.length === 0
    ? null
    : { timestamp: Number(time), signatures };
}

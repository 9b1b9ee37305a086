// A certificate for 127.0.0.1 that nobody has signed but itself, made anew for each test.

import { generateKeyPairSync, sign } from "node:crypto";

/** DER: a tag, a length, and what is in it. */
function der(tag: number, ...parts: readonly (Buffer | number[])[]): Buffer {
  const content = Buffer.concat(parts.map((part) => Buffer.from(part)));
  const { length } = content;
  const head =
    length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...head]), content]);
}

const sequence = (...parts: Buffer[]) => der(0x30, ...parts);
const oid = (hex: string) => der(0x06, Buffer.from(hex, "hex"));
const utcTime = (date: Date) =>
  der(0x17, Buffer.from(`${date.toISOString().replace(/[-:T]/g, "").slice(2, 14)}Z`));
const octets = (content: Buffer) => der(0x04, content);
const commonName = sequence(der(0x31, sequence(oid("550403"), der(0x0c, Buffer.from("receiver")))));
const ecdsaWithSha256 = sequence(oid("2a8648ce3d040302"));
const isAuthority = sequence(oid("551d13"), octets(sequence(der(0x01, [0xff]))));
const forLoopback = sequence(oid("551d11"), octets(sequence(der(0x87, [127, 0, 0, 1]))));

export function createCertificate(): { readonly key: string; readonly cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const day = 86_400_000;
  const body = sequence(
    der(0xa0, der(0x02, [2])),
    der(0x02, [1]),
    ecdsaWithSha256,
    commonName,
    sequence(utcTime(new Date(Date.now() - day)), utcTime(new Date(Date.now() + day))),
    commonName,
    publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, sequence(isAuthority, forLoopback)),
  );
  const signature = sign("sha256", body, privateKey);
  const certificate = sequence(body, ecdsaWithSha256, der(0x03, [0], signature));
  const base64 = certificate.toString("base64").replace(/.{64}/g, "$&\n");
  return {
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${base64}\n-----END CERTIFICATE-----\n`,
  };
}

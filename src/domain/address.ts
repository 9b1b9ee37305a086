// Which addresses belong to the public internet. Everything that is not known to be public is not.

export type AddressKind = "public" | "loopback" | "internal";

/** 4 or 16 bytes. */
type Bytes = readonly number[];

export interface Network {
  readonly bytes: Bytes;
  readonly bits: number;
}

const network = (text: string): Network => {
  const parsed = parseNetwork(text);
  if (parsed === null) throw new TypeError(`${text} is no network`);
  return parsed;
};

const loopback = ["127.0.0.0/8", "::1/128"].map(network);

const internal4 = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10", // carrier NAT
  "169.254.0.0/16", // link-local, and the metadata services of clouds
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/3", // multicast, reserved, broadcast
].map(network);

const global6 = network("2000::/3");
const internal6 = [
  "2001::/23", // IETF protocols, Teredo among them
  "2001:db8::/32",
  "2002::/16", // 6to4: carries an IPv4 of somebody's choice
  "3fff::/20",
].map(network);

/** IPv6 addresses that are IPv4 addresses in truth: mapped, and NAT64. */
const carriers = ["::ffff:0:0/96", "64:ff9b::/96"].map(network);

export function kindOfAddress(text: string): AddressKind {
  const bytes = parseAddress(text);
  if (bytes === null) return "internal";
  if (loopback.some((of) => isIn(bytes, of))) return "loopback";
  if (bytes.length === 4) return internal4.some((of) => isIn(bytes, of)) ? "internal" : "public";
  const isPublic = isIn(bytes, global6) && !internal6.some((of) => isIn(bytes, of));
  return isPublic ? "public" : "internal";
}

export function isInNetworks(text: string, networks: readonly Network[]): boolean {
  const bytes = parseAddress(text);
  return bytes !== null && networks.some((of) => isIn(bytes, of));
}

export function parseNetwork(text: string): Network | null {
  const [address = "", bits = "", ...rest] = text.split("/");
  const bytes = parsePlain(address);
  const isWhole = /^\d{1,3}$/.test(bits) && rest.length === 0;
  if (bytes === null || !isWhole || Number(bits) > bytes.length * 8) return null;
  return { bytes, bits: Number(bits) };
}

function isIn(bytes: Bytes, { bytes: wanted, bits }: Network): boolean {
  if (bytes.length !== wanted.length) return false;
  return wanted.every((byte, i) => {
    const mask = (0xff00 >> Math.min(8, Math.max(0, bits - i * 8))) & 0xff;
    return ((bytes[i] ?? 0) & mask) === (byte & mask);
  });
}

function parseAddress(text: string): Bytes | null {
  const bytes = parsePlain(text);
  if (bytes === null || bytes.length === 4) return bytes;
  return carriers.some((of) => isIn(bytes, of)) ? bytes.slice(12) : bytes;
}

function parsePlain(text: string): Bytes | null {
  return text.includes(":") ? parseIpv6(text) : parseIpv4(text);
}

function parseIpv4(text: string): Bytes | null {
  const parts = text.split(".");
  const isPlain = parts.length === 4 && parts.every((part) => /^(?:0|[1-9]\d{0,2})$/.test(part));
  const bytes = parts.map(Number);
  return isPlain && bytes.every((byte) => byte <= 255) ? bytes : null;
}

function parseIpv6(text: string): Bytes | null {
  const halves = text.split("::");
  if (halves.length > 2) return null;
  const [head, tail] = halves.map(parseGroups);
  if (head === undefined || head === null || tail === null) return null;
  if (tail === undefined) return head.length === 16 ? head : null;
  const missing = 16 - head.length - tail.length;
  return missing >= 2 ? [...head, ...Array<number>(missing).fill(0), ...tail] : null;
}

/** Groups of four hexadecimal digits; the last one may be an IPv4 address. */
function parseGroups(text: string): number[] | null {
  if (text === "") return [];
  const bytes: number[] = [];
  const groups = text.split(":");
  for (const [i, group] of groups.entries()) {
    const last = i === groups.length - 1 && group.includes(".") ? parseIpv4(group) : null;
    if (last !== null) bytes.push(...last);
    else if (/^[0-9a-f]{1,4}$/i.test(group)) {
      const value = Number.parseInt(group, 16);
      bytes.push(value >> 8, value & 0xff);
    } else return null;
  }
  return bytes;
}

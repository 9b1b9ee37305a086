// Planted secrets are put together from pieces, so that scanners of this repository stay quiet.
export const alnum = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0";
export const hex = "0123456789abcdef0123456789abcdef";
export const jwt = `eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.${alnum}`;
export const base64 = Buffer.from(
  Array.from({ length: 600 }, (_, i) => (i * 7919 + 13 * (i >> 3)) % 256),
).toString("base64");
export const hashes = (length: number, count: number) =>
  Array.from({ length: count }, (_, i) => `${i + 10}${hex.repeat(4)}`.slice(0, length));
export const dumped = (join: string) =>
  Array.from({ length: 400 }, (_, i) =>
    hashes(32, 1)[0]
      ?.slice(i % 30)
      .slice(0, 2),
  ).join(join);
export const prose = "The committee met on Tuesday and agreed to postpone the vote. ".repeat(80);
export const mail =
  "Return-Path: <a@example.com>\r\nFrom: a@example.com\r\nTo: b@example.com\r\nSubject: Hi\r\n\r\nHello";

// How values from PostgreSQL are read: always the same way. The driver's own readers are the whole process's,
// and many applications change them (times as strings, large integers as numbers); what they set there is theirs.

type Read = (text: string) => unknown;

const same: Read = (text) => text;
const readJson: Read = (text) => JSON.parse(text);

// ISO is the date style of all our connections: 2026-11-16 07:03:00.742519+05:30, also BC, also infinity.
const timestamp =
  /^(\d{4,})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?(?:([+-])(\d\d)(?::?(\d\d))?(?::?(\d\d))?)?( BC)?$/;

const endless: Readonly<Record<string, number>> = {
  infinity: Number.POSITIVE_INFINITY,
  "-infinity": Number.NEGATIVE_INFINITY,
};

/** null: it is written in a way that is not ours. */
function readTimestamp(text: string): Date | number | null {
  const match = timestamp.exec(text);
  if (match === null) return endless[text] ?? null;
  const at = (group: number) => Number(match[group] ?? 0);
  const year = match[12] === undefined ? at(1) : 1 - at(1);
  const date = new Date(0);
  date.setUTCFullYear(year, at(2) - 1, at(3));
  const ms = Number((match[7] ?? "").padEnd(3, "0").slice(0, 3));
  date.setUTCHours(at(4), at(5), at(6), ms);
  const offsetSeconds = at(9) * 3_600 + at(10) * 60 + at(11);
  return new Date(+date - (match[8] === "-" ? -1 : 1) * offsetSeconds * 1_000);
}

// An element in quotes, or one without; none of ours have arrays in them.
const element = /"((?:[^"\\]|\\.)*)"|([^{},"]+)/gs;

const arrayOf =
  (read: Read): Read =>
  (text) =>
    Array.from(text.slice(text.indexOf("{")).matchAll(element), ([, quoted, plain = ""]) => {
      if (quoted !== undefined) return read(quoted.replace(/\\(.)/gs, "$1"));
      return plain === "NULL" ? null : read(plain);
    });

/** By the types' numbers, which never change. What is not here stays text: int8 and numeric among others. */
const readers = new Map<number, Read>([
  [16, (text) => text === "t"],
  [17, (text) => Buffer.from(text.slice("\\x".length), "hex")],
  [21, Number],
  [23, Number],
  [26, Number],
  [114, readJson],
  [199, arrayOf(readJson)],
  [700, Number],
  [701, Number],
  [1000, arrayOf((text) => text === "t")],
  [1005, arrayOf(Number)],
  [1007, arrayOf(Number)],
  [1009, arrayOf(same)],
  [1015, arrayOf(same)],
  [1016, arrayOf(same)],
  [1022, arrayOf(Number)],
  [1184, readTimestamp],
  [1185, arrayOf(readTimestamp)],
  [2951, arrayOf(same)],
  [3802, readJson],
]);

const json = 114;

const readerOf = (type: number): Read => readers.get(type) ?? same;

/** The same for hot statements, where JSON comes as its text: who needs it reads it when it is needed. */
export const hotReaderOf = (type: number): Read => (type === json ? same : readerOf(type));

/** What a driver's client wants to be told. */
export const types = { getTypeParser: readerOf as never };

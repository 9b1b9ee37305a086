// Data as people read it: in columns, with times in words, and with nothing in it that a terminal obeys.

const obeyed = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

/** One line of text from somebody else. A terminal would obey control characters; they are shown as dots. */
export const plain = (text: string): string => text.replace(/[\t\r\n]+/g, " ").replace(obeyed, "·");

/** The same for text of several lines. */
export const plainLines = (text: string): string => text.split(/\r?\n/).map(plain).join("\n");

/** What every terminal shows as it is, whatever strings the value holds. */
export const plainJson = (value: unknown): string =>
  plainLines(JSON.stringify(value, null, 2) ?? "null");

export const widthOf = (text: string): number => [...text].length;

export function clip(text: string, width: number): string {
  const letters = [...text];
  if (letters.length <= width) return text;
  return width < 1 ? "" : `${letters.slice(0, width - 1).join("")}…`;
}

export interface Column<Row> {
  readonly title: string;
  readonly value: (row: Row) => string;
  /** Numbers stand at the right. */
  readonly right?: boolean;
}

const gap = "  ";

/** The last column is cut where the line would be longer than the terminal is wide. */
export function table<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  width = Number.POSITIVE_INFINITY,
): string {
  const cells = [
    columns.map(({ title }) => title),
    ...rows.map((row) => columns.map(({ value }) => plain(value(row)))),
  ];
  const widths = columns.map((_, at) => Math.max(...cells.map((row) => widthOf(row[at] ?? ""))));
  const pad = (cell: string, at: number) => {
    const space = " ".repeat(Math.max(0, (widths[at] ?? 0) - widthOf(cell)));
    return columns[at]?.right === true ? space + cell : cell + space;
  };
  return cells.map((row) => clip(row.map(pad).join(gap).trimEnd(), width)).join("\n");
}

/** Names and values below each other. */
export function fields(pairs: readonly (readonly [string, string | null | undefined])[]): string {
  const shown = pairs.filter((pair): pair is [string, string] => !!pair[1]);
  const width = Math.max(...shown.map(([name]) => name.length)) + 2;
  return shown.map(([name, value]) => `${name.padEnd(width)}${plain(value)}`).join("\n");
}

const units = [
  { name: "d", seconds: 86_400 },
  { name: "h", seconds: 3_600 },
  { name: "m", seconds: 60 },
] as const;

/** At most six characters: 0.3s, 42s, 3m 5s, 2h 10m, 5d 3h. */
export function age(seconds: number): string {
  if (seconds < 10) return `${Math.max(0, seconds).toFixed(1)}s`;
  const at = units.findIndex((unit) => seconds >= unit.seconds);
  const unit = units[at];
  if (unit === undefined) return `${Math.floor(seconds)}s`;
  const next = units[at + 1] ?? { name: "s", seconds: 1 };
  const rest = Math.floor((seconds % unit.seconds) / next.seconds);
  const whole = Math.floor(seconds / unit.seconds);
  return whole >= 10 || rest === 0
    ? `${whole}${unit.name}`
    : `${whole}${unit.name} ${rest}${next.name}`;
}

/** How long ago, or in how long. */
export function when(date: Date, now: Date): string {
  const seconds = (date.getTime() - now.getTime()) / 1_000;
  return seconds > 0 ? `in ${age(seconds)}` : `${age(-seconds)} ago`;
}

/** How long ago, for what has happened: another machine's clock may be ahead of ours. */
export const ago = (date: Date, now: Date): string =>
  `${age((now.getTime() - date.getTime()) / 1_000)} ago`;

export const count = (n: number, one: string, many = `${one}s`): string =>
  `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

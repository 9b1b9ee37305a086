// "Per minute" means one thing on every page: what happened in the last five minutes, divided by them, or
// by the time there has been anything to count in a system that is younger.

import type { Statistics } from "../api/answers.ts";

/** How far back a rate looks. */
export const rateMinutes = 5;

type Span = Pick<Statistics, "from" | "to">;

/** A second of life says nothing about a minute. */
const leastMinutes = 1 / 6;

const minutesOf = ({ from, to }: Span): number => (Date.parse(to) - Date.parse(from)) / 60_000;

export const perMinute = (count: number, span: Span): number =>
  count / Math.max(leastMinutes, minutesOf(span));

/** Of the five minutes the last one is not over. */
export const spanWords = (span: Span | undefined): string =>
  span !== undefined && minutesOf(span) < rateMinutes - 1
    ? "since the start"
    : `last ${rateMinutes} min`;

export const failuresOf = ({ retried, dead }: { retried: number; dead: number }): number =>
  retried + dead;

interface Drawn {
  readonly minutes: Statistics["series"];
  /** Minutes at the beginning in which there was nothing to count yet. */
  readonly unknown: number;
}

const leastDrawn = 10;

/** A minute that is not over would look like a fall, one before the beginning like a silence. */
export function drawnMinutes({ series, from }: Pick<Statistics, "series" | "from">): Drawn {
  const over = series.slice(0, -1);
  const begins = over.findIndex(({ at }) => Date.parse(at) + 60_000 > Date.parse(from));
  const unknown = begins === -1 ? over.length : begins;
  const left = Math.max(0, Math.min(unknown, over.length - leastDrawn));
  return { minutes: over.slice(left), unknown: unknown - left };
}

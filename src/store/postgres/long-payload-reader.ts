// How a worker reads the long payloads of jobs that were handed to it.
//
// A flush writes its payloads one after the other, so most often they lie beside each other, and reading what lies
// between the first and the last costs half of finding each by its id. Where they do not (others wrote at the same
// time, or into gaps), what is found is not all, or lies too far apart, and they are read by their ids.

import { type Runner, statement } from "./statement.ts";

const byIds = statement(
  "long_payloads_of",
  "select payload from millrace.long_payload where job_id = any($1::uuid[]) order by job_id",
);

const placeOf = (id: string) => `select p.ctid from millrace.long_payload p where p.job_id = ${id}`;
const pageOf = (place: string) => `(${place}::text::point)[0]`;

const between = statement(
  "long_payloads_between",
  `select job_id, payload from millrace.long_payload
  where ctid >= (${placeOf("$1::uuid")}) and ctid <= (
    select case when ${pageOf("l.ctid")} - ${pageOf("f.ctid")} <= $3::int then l.ctid else '(0,0)' end
    from (${placeOf("$1::uuid")}) f, (${placeOf("$2::uuid")}) l
  )`,
);

/** Fewer are found by their ids as soon. */
const fewest = 10;
const pageBytes = 8_000;
/** Of a row, beside its payload. */
const rowBytes = 70;
/** With less than two to a page there is nothing to be had. */
const longest = pageBytes / 2;
/** After so many reads it is tried again, however often it was in vain. */
const mostRest = 64;

export class LongPayloadReader {
  readonly #runner: Pick<Runner, "rows">;
  /** On average, in the last read. */
  #letters = Number.POSITIVE_INFINITY;
  #rest = 0;
  #lastRest = 0;

  constructor(runner: Pick<Runner, "rows">) {
    this.#runner = runner;
  }

  // Row by row: a text that holds them all would be one of those that are collected late and dearly.
  async read(ids: readonly string[]): Promise<string[]> {
    const payloads = (await this.#readBetween(ids)) ?? (await this.#readByIds(ids));
    const letters = payloads.reduce((sum, { length }) => sum + length, 0);
    if (payloads.length > 0) this.#letters = letters / payloads.length;
    return payloads;
  }

  /** Null: not all of them, or in another order. */
  async #readBetween(ids: readonly string[]): Promise<string[] | null> {
    const [first, last] = [ids[0], ids.at(-1)];
    if (first === undefined || last === undefined || ids.length < fewest) return null;
    if (this.#letters > longest || this.#rest-- > 0) return null;
    const pages = (ids.length * (this.#letters + rowBytes)) / pageBytes;
    const most = Math.ceil(1.25 * pages) + 2;
    const rows = await this.#runner.rows(between, [first, last, String(most)]);
    const payloads = inOrder(rows, ids);
    this.#lastRest = payloads === null ? Math.min(mostRest, 2 * this.#lastRest + 1) : 0;
    this.#rest = this.#lastRest;
    return payloads;
  }

  async #readByIds(ids: readonly string[]): Promise<string[]> {
    const rows = await this.#runner.rows(byIds, [`{${ids.join(",")}}`]);
    return rows.map(([payload]) => payload as string);
  }
}

/** Others may lie among them. */
function inOrder(rows: readonly unknown[][], ids: readonly string[]): string[] | null {
  const payloads: string[] = [];
  for (const [id, payload] of rows)
    if (id === ids[payloads.length]) payloads.push(payload as string);
  return payloads.length === ids.length ? payloads : null;
}

// SQL is static text. `millrace.` stands for the schema and `@channel` for its notices; both are
// rendered once per database.

import { MillraceError } from "../../domain/errors.ts";
import type { Value } from "./prepared-run.ts";

export interface Statement {
  readonly name: string;
  readonly text: string;
}

/** Runs a statement wherever the caller wants it run: on a connection, or in somebody's transaction. */
export type RunStatement = (
  source: Statement,
  values: unknown[],
) => Promise<Record<string, unknown>[]>;

/** Runs statements one after the other: a connection, or a leader's fenced transactions on it. */
export interface Runner {
  query<R extends Record<string, unknown>>(source: Statement, values?: unknown[]): Promise<R[]>;
  /** As arrays: the cheapest form, for the hot statements. They must have a name. */
  rows(source: Statement, values: readonly Value[]): Promise<unknown[][]>;
}

export const statement = (name: string, text: string): Statement => Object.freeze({ name, text });

export class Renderer {
  readonly channel: string;
  readonly #schema: string;
  readonly #rendered = new Map<Statement, Statement>();

  constructor(schema: string) {
    this.channel = `millrace_${schema}`;
    this.#schema = `"${schema.replaceAll('"', '""')}".`;
  }

  render(source: Statement): Statement {
    let rendered = this.#rendered.get(source);
    if (rendered === undefined) {
      rendered = statement(source.name, this.text(source.text));
      this.#rendered.set(source, rendered);
    }
    return rendered;
  }

  text(sql: string): string {
    const channel = `'${this.channel.replaceAll("'", "''")}'`;
    return sql.replace(/\bmillrace\./g, this.#schema).replaceAll("@channel", channel);
  }
}

/** An array parameter as text: cheap to build, and every driver can send it. */
export function arrayText(
  values: readonly (string | number | boolean | null | undefined)[],
): string {
  let text = "{";
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (i > 0) text += ",";
    if (value === null || value === undefined) text += "NULL";
    else if (typeof value === "string") text += quoted(value);
    else text += value;
  }
  return `${text}}`;
}

/** The same, but null when there is nothing in it: `unnest(null)` costs nothing. */
export function sparseArrayText(
  values: readonly (string | number | null | undefined)[],
): string | null {
  return values.some((value) => value !== null && value !== undefined) ? arrayText(values) : null;
}

const plain = /^[A-Za-z0-9_.:-]+$/;

function quoted(value: string): string {
  if (plain.test(value) && value.toUpperCase() !== "NULL") return value;
  return `"${value.replace(/["\\]/g, "\\$&")}"`;
}

/** Drivers answer with `{ rows }` or with the rows themselves. */
export function rowsOf(answer: unknown): Record<string, unknown>[] {
  if (Array.isArray(answer)) return answer;
  if (
    typeof answer === "object" &&
    answer !== null &&
    "rows" in answer &&
    Array.isArray(answer.rows)
  ) {
    return answer.rows;
  }
  throw foreignAnswer();
}

/** Whether the job is stored cannot be known: the transaction is not what it seems. */
export const foreignAnswer = (): MillraceError =>
  new MillraceError(
    "OPTION_INVALID",
    "tx.query did not answer with the rows of its statement: it must run it, and give { rows } or the rows.",
  );

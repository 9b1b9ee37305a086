// One run of a named statement, with its rows as arrays: what the driver's own query does, without what a hot
// statement does not need. Which types its columns have is asked for once per connection, not with every run.

import type pg from "pg";
import { runMessage } from "./run-message.ts";
import { hotReaderOf } from "./value-readers.ts";

type Read = (text: string) => unknown;

/** As far as the driver's types do not tell. */
interface Wire extends pg.Connection {
  readonly parsedStatements: Record<string, string | undefined>;
  readonly submittedNamedStatements: Record<string, string | undefined>;
}

export type Value = string | number | boolean | null | undefined;

type Columns = Map<string, readonly Read[]>;

const knownOf = new WeakMap<pg.Connection, Columns>();

function columnsOf(connection: pg.Connection): Columns {
  const known: Columns = knownOf.get(connection) ?? new Map();
  knownOf.set(connection, known);
  return known;
}

const textOf = (value: Value): string | null =>
  value === null || value === undefined || typeof value === "string"
    ? (value ?? null)
    : String(value);

/** May be told more than once: the first time counts. */
type Done = (error: unknown, rows: unknown[][], run: PreparedRun) => void;

const portal = { type: "P", name: "" };

export class PreparedRun implements pg.Submittable {
  readonly name: string;
  readonly text: string;
  readonly #values: readonly Value[];
  readonly #done: Done;
  #known: Columns | null = null;
  #columns: readonly Read[] | null = null;
  readonly #rows: unknown[][] = [];
  #error: unknown;

  constructor(
    { name, text }: { readonly name: string; readonly text: string },
    values: readonly Value[],
    done: Done,
  ) {
    this.name = name;
    this.text = text;
    this.#values = values;
    this.#done = done;
  }

  submit(connection: pg.Connection): void {
    const wire = connection as Wire;
    const { name, text } = this;
    this.#known = columnsOf(wire);
    this.#columns = this.#known.get(name) ?? null;
    const values = this.#values.map(textOf);
    const isParsed =
      (wire.parsedStatements[name] ?? wire.submittedNamedStatements[name]) !== undefined;
    if (isParsed && this.#columns !== null) {
      wire.stream.write(runMessage(name, values));
      return;
    }
    wire.stream.cork();
    if (!isParsed) {
      wire.parse({ name, text, types: [] }, true);
      wire.submittedNamedStatements[name] = text;
    }
    wire.bind({ statement: name, values }, true);
    if (this.#columns === null) wire.describe(portal, true);
    wire.execute(null, true);
    wire.sync();
    wire.stream.uncork();
  }

  handleRowDescription({ fields }: { readonly fields: readonly pg.FieldDef[] }): void {
    this.#columns = fields.map(({ dataTypeID }) => hotReaderOf(dataTypeID));
    this.#known?.set(this.name, this.#columns);
  }

  handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
    if (this.#error !== undefined) return;
    const columns = this.#columns ?? [];
    const row = new Array<unknown>(fields.length);
    try {
      for (let i = 0; i < fields.length; i++) {
        const field = fields[i] ?? null;
        row[i] = field === null ? null : columns[i]?.(field);
      }
    } catch (error) {
      this.#error = error;
    }
    this.#rows.push(row);
  }

  handleCommandComplete(): void {}

  handleError(error: unknown): void {
    this.#done(error, [], this);
  }

  handleReadyForQuery(): void {
    this.#done(this.#error, this.#rows, this);
  }
}

// One run of a named statement, with its rows as arrays: what the driver's own query does, without what a hot
// statement does not need. Which types its columns have is asked for once per connection, not with every run.

import type pg from "pg";
import { List, listBytes } from "./binary-list.ts";
import { MessageBuffer, type Sent, sendRun } from "./run-message.ts";
import { hotReaderOf } from "./value-readers.ts";

type Read = (text: string) => unknown;

/** As far as the driver's types do not tell. */
interface Wire extends pg.Connection {
  readonly parsedStatements: Record<string, string | undefined>;
  readonly submittedNamedStatements: Record<string, string | undefined>;
}

export type Value = Sent | number | boolean | undefined;

/** What a connection has for its runs: the columns of its statements, and where messages are written. */
class Known {
  readonly columns = new Map<string, readonly Read[]>();
  readonly buffer = new MessageBuffer();
}

const knownOf = new WeakMap<pg.Connection, Known>();

function knownBy(connection: pg.Connection): Known {
  const known = knownOf.get(connection) ?? new Known();
  knownOf.set(connection, known);
  return known;
}

function sentFor(value: Value): Sent {
  if (value === null || value === undefined) return null;
  const isSent = typeof value === "string" || Array.isArray(value) || value instanceof List;
  return isSent ? value : String(value);
}

/** As the driver takes it. */
function joined(value: Sent): string | Buffer | null {
  if (value === null || typeof value === "string") return value;
  return value instanceof List ? listBytes(value) : value.join("");
}

/** May be told more than once: the first time counts. */
type Done = (error: unknown, rows: unknown[][], run: PreparedRun) => void;

/** The statement is through, its commit is not. Throws nothing. */
export type Executed = (rows: unknown[][]) => void;

const portal = { type: "P", name: "" };

export class PreparedRun implements pg.Submittable {
  readonly name: string;
  readonly text: string;
  readonly #values: readonly Value[];
  readonly #done: Done;
  readonly #executed: Executed | null;
  #known: Known | null = null;
  #columns: readonly Read[] | null = null;
  readonly #rows: unknown[][] = [];
  #error: unknown;

  constructor(
    { name, text }: { readonly name: string; readonly text: string },
    values: readonly Value[],
    done: Done,
    executed: Executed | null = null,
  ) {
    this.name = name;
    this.text = text;
    this.#values = values;
    this.#done = done;
    this.#executed = executed;
  }

  submit(connection: pg.Connection): void {
    const wire = connection as Wire;
    const { name, text } = this;
    const known = knownBy(wire);
    this.#known = known;
    this.#columns = known.columns.get(name) ?? null;
    const values = this.#values.map(sentFor);
    const isParsed =
      (wire.parsedStatements[name] ?? wire.submittedNamedStatements[name]) !== undefined;
    if (isParsed && this.#columns !== null) {
      sendRun(wire.stream, known.buffer, name, values, this.#executed !== null);
      return;
    }
    wire.stream.cork();
    if (!isParsed) {
      wire.parse({ name, text, types: [] }, true);
      wire.submittedNamedStatements[name] = text;
    }
    wire.bind({ statement: name, values: values.map(joined) }, true);
    if (this.#columns === null) wire.describe(portal, true);
    wire.execute(null, true);
    if (this.#executed !== null) wire.flush();
    wire.sync();
    wire.stream.uncork();
  }

  handleRowDescription({ fields }: { readonly fields: readonly pg.FieldDef[] }): void {
    this.#columns = fields.map(({ dataTypeID }) => hotReaderOf(dataTypeID));
    this.#known?.columns.set(this.name, this.#columns);
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

  handleCommandComplete(): void {
    if (this.#error === undefined) this.#executed?.(this.#rows);
  }

  handleError(error: unknown): void {
    this.#done(error, [], this);
  }

  handleReadyForQuery(): void {
    this.#done(this.#error, this.#rows, this);
  }
}

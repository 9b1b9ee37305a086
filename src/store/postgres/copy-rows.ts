// COPY from one server straight into another: rows as text, never as objects of ours. The slower side sets
// the pace, so memory stays small whatever the table holds.

import type { Socket } from "node:net";
import type pg from "pg";

/** What `pg` has for COPY, which its types do not tell of. */
interface Wire {
  readonly stream: Socket;
  query(text: string): void;
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
  sendCopyFail(reason: string): void;
}

const wireOf = (client: pg.Client): Wire => (client as unknown as { connection: Wire }).connection;

/** One COPY as `pg` drives it: it is told of every message until the server is ready again. */
class Copy {
  readonly text: string;
  readonly ready: Promise<void>;
  readonly done: Promise<number>;
  onData: (chunk: Buffer) => void = () => undefined;
  #begin: () => void = () => undefined;
  #end: (rows: number) => void = () => undefined;
  #fail: (error: Error) => void = () => undefined;
  #rows = 0;
  #error: Error | null = null;

  constructor(text: string) {
    this.text = text;
    this.ready = new Promise((begin) => {
      this.#begin = begin;
    });
    this.done = new Promise((end, fail) => {
      this.#end = end;
      this.#fail = fail;
    });
    // Whoever waits for `done` hears of it; until then it must not go unheard.
    this.done.catch(() => undefined);
  }

  submit(wire: Wire): void {
    wire.query(this.text);
  }

  handleCopyInResponse(): void {
    this.#begin();
  }

  handleCopyData({ chunk }: { readonly chunk: Buffer }): void {
    this.onData(chunk);
  }

  handleCommandComplete({ text }: { readonly text: string }): void {
    this.#rows = Number(text.replace(/^COPY /, ""));
  }

  handleError(error: Error): void {
    this.#error = error;
    this.#begin();
    this.#fail(error);
  }

  handleReadyForQuery(): void {
    if (this.#error === null) this.#end(this.#rows);
  }

  get failed(): boolean {
    return this.#error !== null;
  }
}

/** Resolves with how many rows have arrived. */
export async function copyRows(
  source: { readonly client: pg.Client; readonly sql: string },
  target: { readonly client: pg.Client; readonly sql: string },
  onBytes: (bytes: number) => void = () => undefined,
): Promise<number> {
  const [from, to] = [wireOf(source.client), wireOf(target.client)];
  const incoming = new Copy(`copy ${target.sql} from stdin`);
  target.client.query(incoming as never);
  await incoming.ready;
  if (incoming.failed) return incoming.done;
  const outgoing = new Copy(`copy ${source.sql} to stdout`);
  const goOn = () => from.stream.resume();
  to.stream.on("drain", goOn);
  outgoing.onData = (chunk) => {
    // A server that has refused a row ignores the rest; the other side still has to be read to its end.
    if (incoming.failed) return;
    to.sendCopyFromChunk(chunk);
    onBytes(chunk.length);
    if (to.stream.writableNeedDrain) from.stream.pause();
  };
  try {
    source.client.query(outgoing as never);
    await outgoing.done;
    to.endCopyFrom();
    return await incoming.done;
  } catch (error) {
    if (!incoming.failed) {
      to.sendCopyFail("the source failed");
      await incoming.done.catch(() => undefined);
    }
    throw error;
  } finally {
    to.stream.off("drain", goOn);
    goOn();
  }
}

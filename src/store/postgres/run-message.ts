// What a prepared statement is run with, as one piece: Bind, Execute and Sync of PostgreSQL's protocol, all values
// as text but for lists. The driver writes each of them apart, and joins them again on the way out.
//
// Whoever cannot wait for the commit has Flush before Sync: the server then says first what the statement did.

import type { Writable } from "node:stream";
import { bytesOfList, List, writeList } from "./binary-list.ts";

const bind = 0x42;
const execute = [0x45, 0, 0, 0, 9, 0, 0, 0, 0, 0];
const flush = [0x48, 0, 0, 0, 4];
const sync = [0x53, 0, 0, 0, 4];
/** All columns as text, of any number of rows. */
const end = Buffer.from([0, 0, ...execute, ...sync]);
const endToldEarly = Buffer.from([0, 0, ...execute, ...flush, ...sync]);

const lengthBytes = 4;
const countBytes = 2;
const mostBytesPerLetter = 3;

/** A text, or pieces of one that need not be joined to be sent. */
export type Text = string | readonly string[];

/** From so many letters on a piece is long enough: one of twice as many would be collected late and dearly. */
export const lettersPerPiece = 50_000;

/** What is sent for one value. */
export type Sent = Text | List | null;

const bytesOf = (text: string) => Buffer.byteLength(text);
const mostBytesOf = ({ length }: string) => mostBytesPerLetter * length;

function measured(values: readonly Sent[], measure: (text: string) => number): number {
  let sum = 0;
  for (const value of values) {
    if (typeof value === "string") sum += measure(value);
    else if (value instanceof List) sum += bytesOfList(value, measure);
    else if (value !== null) for (const piece of value) sum += measure(piece);
  }
  return sum;
}

function write(message: Buffer, value: Text | List, at: number): number {
  if (typeof value === "string") return message.write(value, at);
  if (value instanceof List) return writeList(message, value, at);
  let length = 0;
  for (const piece of value) length += message.write(piece, at + length);
  return length;
}

const isList = (value: Sent) => value instanceof List;

/** Without any, all values are texts. */
function writeFormats(message: Buffer, values: readonly Sent[], at: number): number {
  if (!values.some(isList)) return message.writeUInt16BE(0, at);
  let end = message.writeUInt16BE(values.length, at);
  for (const value of values) end = message.writeUInt16BE(isList(value) ? 1 : 0, end);
  return end;
}

/** What is never written to takes no memory, so this is room enough to write without counting. */
const mostKept = 3 << 20;
const none = Buffer.alloc(0);

/** Where messages are written, one after the other. */
export class MessageBuffer {
  #bytes = none;

  ofAtLeast(room: number): Buffer {
    if (room <= this.#bytes.length) return this.#bytes;
    const bytes = Buffer.allocUnsafeSlow(Math.ceil(room * 1.25));
    if (room <= mostKept) this.#bytes = bytes;
    return bytes;
  }

  /** What was written last is still on its way. */
  leave(): void {
    this.#bytes = none;
  }
}

/** At least as many bytes as it takes; of what is very long exactly so many. */
function roomFor(name: string, values: readonly Sent[]): number {
  const frame = 1 + lengthBytes + 1 + bytesOf(name) + 1 + 2 * countBytes + endToldEarly.length;
  const each = values.length * (countBytes + lengthBytes);
  const most = frame + each + measured(values, mostBytesOf);
  return most <= mostKept ? most : frame + each + measured(values, bytesOf);
}

export function runMessage(
  name: string,
  values: readonly Sent[],
  buffer: MessageBuffer,
  toldEarly = false,
): Buffer {
  const message = buffer.ofAtLeast(roomFor(name, values));
  message[0] = bind;
  let at = message.writeUInt8(0, 1 + lengthBytes); // the portal without a name
  at += message.write(name, at);
  at = message.writeUInt8(0, at);
  at = writeFormats(message, values, at);
  at = message.writeUInt16BE(values.length, at);
  for (const value of values) {
    const length = value === null ? -1 : write(message, value, at + lengthBytes);
    message.writeInt32BE(length, at);
    at += lengthBytes + Math.max(0, length);
  }
  message.writeInt32BE(at + countBytes - 1, 1);
  at += (toldEarly ? endToldEarly : end).copy(message, at);
  return message.subarray(0, at);
}

export function sendRun(
  stream: Writable,
  buffer: MessageBuffer,
  name: string,
  values: readonly Sent[],
  toldEarly: boolean,
): void {
  stream.write(runMessage(name, values, buffer, toldEarly));
  if (stream.writableLength > 0) buffer.leave();
}

// What a prepared statement is run with, as one piece: Bind, Execute and Sync of PostgreSQL's protocol, all values
// as text. The driver writes each of them apart, and joins them again on the way out.

const bind = 0x42;
const execute = [0x45, 0, 0, 0, 9, 0, 0, 0, 0, 0];
const sync = [0x53, 0, 0, 0, 4];
/** All columns as text, of any number of rows. */
const end = Buffer.from([0, 0, ...execute, ...sync]);

const lengthBytes = 4;
const countBytes = 2;
const shortLetters = 100;

/** At least as many as it has; of a long one exactly so many. */
const roomFor = (text: string) =>
  text.length <= shortLetters ? text.length * 3 : Buffer.byteLength(text);

export function runMessage(name: string, values: readonly (string | null)[]): Buffer {
  let room = 1 + lengthBytes + 1 + roomFor(name) + 1 + 2 * countBytes + end.length;
  for (const value of values) room += lengthBytes + (value === null ? 0 : roomFor(value));
  const message = Buffer.allocUnsafe(room);
  message[0] = bind;
  let at = message.writeUInt8(0, 1 + lengthBytes); // the portal without a name
  at += message.write(name, at);
  at = message.writeUInt8(0, at);
  at = message.writeUInt16BE(0, at);
  at = message.writeUInt16BE(values.length, at);
  for (const value of values) {
    const length = value === null ? -1 : message.write(value, at + lengthBytes);
    message.writeInt32BE(length, at);
    at += lengthBytes + Math.max(0, length);
  }
  message.writeInt32BE(at + countBytes - 1, 1);
  at += end.copy(message, at);
  return message.subarray(0, at);
}

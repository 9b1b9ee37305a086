// Lists in PostgreSQL's own form: the server has nothing to take apart or to parse, which for the ids and payloads of a
// flush was a twentieth of its time.

const types = { text: 25, uuid: 2950 };

export class List {
  readonly of: keyof typeof types;
  readonly values: readonly string[];

  /** Ids are UUIDs with their hyphens, as we make them. */
  constructor(of: keyof typeof types, values: readonly string[]) {
    this.of = of;
    this.values = values;
  }
}

const int32Bytes = 4;
const headerBytes = 5 * int32Bytes;
const uuidBytes = 16;

/** `measure` says how many bytes a text has, or has at most. */
export function bytesOfList({ of, values }: List, measure: (text: string) => number): number {
  let bytes = headerBytes + values.length * int32Bytes;
  if (of === "uuid") return bytes + values.length * uuidBytes;
  for (const value of values) bytes += measure(value);
  return bytes;
}

const codeOf0 = 48;
const codeOf9 = 57;
const codeBeforeA = 87;
/** Makes a capital small, and leaves digits as they are. */
const small = 32;

function digitAt(text: string, at: number): number {
  const code = text.charCodeAt(at) | small;
  return code - (code <= codeOf9 ? codeOf0 : codeBeforeA);
}

function writeUuid(message: Buffer, id: string, at: number): number {
  let from = 0;
  for (let i = 0; i < uuidBytes; i++) {
    // The hyphens stand before these bytes.
    if (i === 4 || i === 6 || i === 8 || i === 10) from++;
    message[at + i] = (digitAt(id, from) << 4) | digitAt(id, from + 1);
    from += 2;
  }
  return uuidBytes;
}

const writeText = (message: Buffer, text: string, at: number): number => message.write(text, at);

/** Answers how many bytes it has. */
export function writeList(message: Buffer, { of, values }: List, at: number): number {
  const write = of === "uuid" ? writeUuid : writeText;
  let end = message.writeInt32BE(1, at); // one dimension
  end = message.writeInt32BE(0, end); // no nulls
  end = message.writeInt32BE(types[of], end);
  end = message.writeInt32BE(values.length, end);
  end = message.writeInt32BE(1, end); // counted from 1
  for (const value of values) {
    const length = write(message, value, end + int32Bytes);
    end = message.writeInt32BE(length, end) + length;
  }
  return end - at;
}

/** By itself. */
export function listBytes(list: List): Buffer {
  const bytes = Buffer.allocUnsafe(bytesOfList(list, Buffer.byteLength));
  return bytes.subarray(0, writeList(bytes, list, 0));
}

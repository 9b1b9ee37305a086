import { Writable } from "node:stream";
import { expect, test } from "vitest";
import { MessageBuffer, runMessage, sendRun } from "../../src/store/postgres/run-message.ts";

/** As the protocol's documentation has it: a letter, the length of the rest, the rest. */
function message(letter: string, ...parts: Buffer[]): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(4 + Buffer.concat(parts).length);
  return Buffer.concat([Buffer.from(letter), length, ...parts]);
}

const number = (bytes: 2 | 4, value: number): Buffer => {
  const buffer = Buffer.alloc(bytes);
  buffer.writeIntBE(value, 0, bytes);
  return buffer;
};
const name = (text: string) => Buffer.from(`${text}\0`);
const spokenValue = (value: string | null) =>
  value === null
    ? number(4, -1)
    : Buffer.concat([number(4, Buffer.byteLength(value)), Buffer.from(value)]);

const spoken = (statement: string, values: (string | null)[], toldEarly = false) =>
  Buffer.concat([
    message(
      "B",
      ...[name(""), name(statement), number(2, 0), number(2, values.length)],
      ...values.map(spokenValue),
      number(2, 0),
    ),
    message("E", name(""), number(4, 0)),
    ...(toldEarly ? [message("H")] : []),
    message("S"),
  ]);

test.each([
  ["nothing", []],
  ["null and nothing", [null, "", null]],
  ["plain text", ["1", "a b", "{1,2}"]],
  ["letters of two, three and four bytes", ["é", "€uro", "𝄞", "a𝄞é€"]],
  ["half of a letter, which becomes a mark", ["\ud834", "x\udd1ey"]],
  ["what is just short and just long", ["x".repeat(100), "é".repeat(101), "€".repeat(100)]],
  ["what is very long", ["ü".repeat(70_000), null, "y".repeat(300_000)]],
])("a run with %s is told as the protocol wants it", (_, values) => {
  const buffer = new MessageBuffer();
  for (const statement of ["flush_one", "ñame"])
    for (const early of [false, true]) {
      const told = runMessage(statement, values, buffer, early);
      expect(told.equals(spoken(statement, values, early))).toBe(true);
    }
});

test("a text in pieces is told as one", () => {
  for (const pieces of [[], ["a"], ["ü", "", "€𝄞"], ["x".repeat(60_000), "ü".repeat(1_500_000)]]) {
    const told = runMessage("flush", ["1", pieces, null], new MessageBuffer());
    expect(told.equals(spoken("flush", ["1", pieces.join(""), null]))).toBe(true);
  }
});

/** Reads what comes when it is told to, and tells where it lay. */
function streamThat(takes: "at once" | "later") {
  const taken: string[] = [];
  const places = new Set<ArrayBufferLike>();
  const waiting: (() => void)[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      const take = () => {
        taken.push(chunk.toString());
        places.add(chunk.buffer);
        done();
      };
      if (takes === "at once") take();
      else waiting.push(take);
    },
  });
  return { stream, taken, places, waiting };
}

test.each(["at once", "later"] as const)("what is taken %s is what was sent", async (takes) => {
  const { stream, taken, places, waiting } = streamThat(takes);
  const buffer = new MessageBuffer();
  const values = ["first", "second", "third"];
  for (const value of values) sendRun(stream, buffer, "s", [value], false);
  while (taken.length < values.length) {
    waiting.shift()?.();
    await new Promise(setImmediate);
  }
  expect(taken).toEqual(values.map((value) => spoken("s", [value]).toString()));
  expect(places.size).toBe(takes === "at once" ? 1 : values.length);
});

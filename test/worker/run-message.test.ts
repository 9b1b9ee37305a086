import { expect, test } from "vitest";
import { runMessage } from "../../src/store/postgres/run-message.ts";

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

const spoken = (statement: string, values: (string | null)[]) =>
  Buffer.concat([
    message(
      "B",
      ...[name(""), name(statement), number(2, 0), number(2, values.length)],
      ...values.map(spokenValue),
      number(2, 0),
    ),
    message("E", name(""), number(4, 0)),
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
  for (const statement of ["flush_one", "ñame"])
    expect(runMessage(statement, values).equals(spoken(statement, values))).toBe(true);
});

import { Writable } from "node:stream";
import { expect, test } from "vitest";
import { uuidv7 } from "../../src/runtime/uuid.ts";
import { List, listBytes } from "../../src/store/postgres/binary-list.ts";
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

const spokenList = (type: number, values: Buffer[]) =>
  Buffer.concat([
    ...[1, 0, type, values.length, 1].map((value) => number(4, value)),
    ...values.flatMap((value) => [number(4, value.length), value]),
  ]);
const spokenTexts = (values: string[]) =>
  spokenList(
    25,
    values.map((value) => Buffer.from(value)),
  );
const spokenIds = (values: string[]) =>
  spokenList(
    2950,
    values.map((value) => Buffer.from(value.replaceAll("-", ""), "hex")),
  );

test("lists are told in the server's own form, and only they are said to be", () => {
  const ids = ["00112233-4455-6677-8899-aabbccddeeff", "FFEEDDCC-BBAA-9988-7766-554433221100"];
  const texts = ["", "a", "é€𝄞", '{"x":"\n"}', "x".repeat(60_000), "ü".repeat(1_500_000)];
  const [idList, textList] = [spokenIds(ids), spokenTexts(texts)];
  const told = runMessage(
    "flush",
    ["1", new List("uuid", ids), null, new List("text", texts)],
    new MessageBuffer(),
  );
  const bound = message(
    "B",
    ...[name(""), name("flush")],
    ...[4, 0, 1, 0, 1, 4].map((value) => number(2, value)),
    ...[spokenValue("1"), number(4, idList.length), idList, spokenValue(null)],
    ...[number(4, textList.length), textList, number(2, 0)],
  );
  const ended = Buffer.concat([message("E", name(""), number(4, 0)), message("S")]);
  expect(told.equals(Buffer.concat([bound, ended]))).toBe(true);
});

test("a list by itself is the same", () => {
  const ids = Array.from({ length: 300 }, () => uuidv7());
  expect(listBytes(new List("uuid", ids)).equals(spokenIds(ids))).toBe(true);
  expect(listBytes(new List("text", ["ü", "€"])).equals(spokenTexts(["ü", "€"]))).toBe(true);
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

import fc from "fast-check";
import { expect, test } from "vitest";
import { useMillrace } from "../support/instance.ts";

const instances = useMillrace();

/** Between two numbers that are equally near, which of them it is depends on the last bit. */
const halves = Array.from({ length: 24 }, (_, zeros) => {
  const odd = (2n ** 53n / 5n ** BigInt(zeros) + 1n) | 1n;
  return [0n, 2n, 4n, 6n, 20n, 200n].flatMap((more) =>
    [0n, 1n, 2n, 3n].map((twos) => Number(`-${(odd + more) * 2n ** twos}e${zeros}`)),
  );
});
const whole = fc.tuple(fc.bigInt({ min: 1n, max: 10n ** 17n }), fc.nat({ max: 24 }));

test("the SQL function writes numbers as TypeScript does, for requests under one key to be the same", async () => {
  const numbers = [
    ...[1e23, -1e23, 40357865665508940, 2 ** 53, 2 ** 53 + 2, 2 ** 54 + 4, 1e21, 1e22, 1e39, 1e40],
    ...[Number.MAX_VALUE, -Number.MAX_VALUE, 2 ** 53 - 1, 0.5, 2 ** 52 + 1, 5e-324],
    ...halves.flat(),
    ...fc.sample(whole, 2_000).map(([digits, zeros]) => Number(`${digits}e${zeros}`)),
    ...fc.sample(fc.double({ noNaN: true, noDefaultInfinity: true }), 2_000),
  ];
  const rows = await instances.query<{ text: string }>(
    `select millrace.canonical_json(x) as text
      from jsonb_array_elements($1::jsonb) with ordinality as n (x, place) order by place`,
    [JSON.stringify(numbers)],
  );
  const written = rows.map(({ text }, i) => [numbers[i], text]);
  expect(written).toEqual(numbers.map((one) => [one, JSON.stringify(one)]));
});

import fc from "fast-check";
import { expect, test } from "vitest";
import { Line, type Link } from "../../src/worker/line.ts";

test("keeps the order in which they came, whoever leaves", () => {
  const steps = fc.array(fc.record({ leaves: fc.boolean(), which: fc.nat(1_000) }));
  fc.assert(
    fc.property(steps, (taken) => {
      const line = new Line<number>();
      let links: Link<number>[] = [];
      for (const [i, { leaves, which }] of taken.entries()) {
        const leaving = leaves ? links[which % Math.max(1, links.length)] : undefined;
        if (leaving === undefined) links.push(line.add(i));
        else {
          line.remove(leaving);
          links = links.filter((link) => link !== leaving);
        }
        expect(line.all()).toEqual(links.map(({ value }) => value));
        expect(line.first).toBe(links[0]?.value);
        expect(line.length).toBe(links.length);
      }
    }),
  );
});

test("whoever has left keeps nobody", () => {
  const line = new Line<string>();
  const [first, middle, last] = ["first", "middle", "last"].map((value) => line.add(value));
  for (const link of [middle, first, last]) {
    if (link !== undefined) line.remove(link);
    expect([link?.before, link?.after]).toEqual([null, null]);
  }
  expect(line.first).toBeUndefined();
});

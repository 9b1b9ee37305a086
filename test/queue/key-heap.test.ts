import fc from "fast-check";
import { expect, it } from "vitest";
import { KeyHeap } from "../../src/queue/key-heap.ts";

it("gives the values back in the order of their keys", () => {
  const entry = fc.record({ key: fc.double({ noNaN: true }), pops: fc.nat({ max: 2 }) });
  const property = fc.property(fc.array(entry, { maxLength: 3_000 }), (entries) => {
    const heap = new KeyHeap();
    const keys: number[] = [];
    for (const [value, { key, pops }] of entries.entries()) {
      heap.push(key, value);
      keys.push(key);
      for (let i = 0; i < pops && keys.length > 0; i++) {
        const least = Math.min(...keys);
        expect(heap.firstKey).toBe(least);
        expect(entries[heap.pop()]?.key).toBe(least);
        keys.splice(keys.indexOf(least), 1);
      }
      expect(heap.size).toBe(keys.length);
    }
    const rest = Array.from({ length: heap.size }, () => entries[heap.pop()]?.key);
    expect(rest).toEqual(keys.sort((a, b) => a - b));
  });
  fc.assert(property, { numRuns: 200, interruptAfterTimeLimit: 10_000 });
});

it("grows far beyond its first capacity and stays in order", () => {
  const heap = new KeyHeap();
  for (let i = 0; i < 50_000; i++) heap.push((i * 7_919) % 50_000, i);
  for (let i = 0; i < 50_000; i++) expect((heap.pop() * 7_919) % 50_000).toBe(i);
});

it("has nothing to give when it is empty", () => {
  const heap = new KeyHeap();
  expect(heap.firstKey).toBe(Number.POSITIVE_INFINITY);
  expect(heap.pop()).toBe(-1);
  heap.push(1, 7);
  expect(heap.pop()).toBe(7);
  expect(heap.pop()).toBe(-1);
  expect(heap.size).toBe(0);
});

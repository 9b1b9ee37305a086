import fc from "fast-check";
import { expect, test } from "vitest";
import { hasMark, keyShapes } from "../../src/domain/key-shapes.ts";

// What must stand before and behind makes no difference to marks.
const bare = (shape: string) => new RegExp(`^(?:${shape.replace(/\(\?<?[!=][^()]*\)/g, "")})$`);

test.each(Object.entries(keyShapes))("every %s has a mark", (_, [, shape]) => {
  fc.assert(
    fc.property(fc.stringMatching(bare(shape)), (secret) => {
      expect(hasMark(`Ann's is ${secret}, she says`)).toBe(true);
    }),
    { numRuns: 300 },
  );
});

test("few other texts have one", () => {
  const word = fc.stringMatching(/^[a-z0-9]{4,30}$/);
  const texts = fc.sample(word, { seed: 7, numRuns: 2_000 });
  expect(texts.filter(hasMark).length).toBeLessThan(20);
});

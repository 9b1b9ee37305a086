import { expect, test } from "vitest";
import { survivesFuzz } from "../support/fuzz.ts";
import { useHttp } from "../support/http.ts";

const http = useHttp();

test("10,000 malformed requests get answers below 500, and memory stays flat", async () => {
  await survivesFuzz(http, 1_000, 2);
  const before = process.memoryUsage().rss;
  await survivesFuzz(http, 10_000, 3);
  const grown = (process.memoryUsage().rss - before) / 1_048_576;
  console.log(JSON.stringify({ grownMb: Math.round(grown) }));
  expect(grown).toBeLessThan(200);
});

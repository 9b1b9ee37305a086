import { expect, test } from "vitest";
import { ratiosOf } from "../../bench/report/ratios.mjs";

const row = (config: string, rates: readonly number[]) => ({
  ...{ scenario: "payload_1kb", system: "millrace", config },
  samples: rates.map((rate) => ({ jobs_per_second: rate, server_cpu_s_per_100k: 100 / rate })),
});

test("the ratio of a pair is the median of what each round says, quick or slow", () => {
  const short = row("100 bytes", [100, 10, 90, 80, 12]);
  const long = row("1 KB", [70, 7, 9, 16, 8.4]);
  const ratios = ratiosOf([short, long]).map(({ ratio, met }) => [ratio.toFixed(3), met]);
  expect(ratios).toEqual([
    ["0.700", true],
    ["0.700", true],
  ]);
});

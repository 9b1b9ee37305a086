import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { Fetcher } from "../../src/worker/fetcher.ts";

test("scans are rationed by what they take, but for the first one", () => {
  let now = 1_000;
  const fetcher = new Fetcher({
    ...{ directEveryMs: null, types: null },
    ...{ monotonic: () => now, newClaimId: () => randomUUID() },
  });
  fetcher.serve([1]);
  const scan = (takesMs: number) => {
    const request = fetcher.request("lease", 10, true);
    if (request === null) return "not now";
    now += takesMs;
    fetcher.answered(request, [], takesMs);
    return request.hints === null ? "scanned" : "went on";
  };
  expect(scan(40)).toBe("scanned");
  expect(fetcher.waitMs()).toBe(null);
  fetcher.wake(false);
  expect(fetcher.waitMs()).toBe(0);
  expect(scan(30)).toBe("scanned");
  fetcher.wake(false);
  expect(fetcher.waitMs()).toBe(300);
  expect(scan(1)).toBe("not now");
  now += 300;
  expect(scan(1)).toBe("scanned");
});

// A long file that starts last is waited for by everybody: those known to take long come first.

import { BaseSequencer, type TestSpecification } from "vitest/node";

const long = [
  "conformance/postgres",
  "e2e/dashboard",
  "conformance/plans",
  "http/service",
  "docs/blocks",
  "conformance/redis-queue-cluster",
  "integration/dev",
  "chaos/leader",
  "chaos/triggers",
  "integration/embedded",
  "docs/stories",
];

const rank = ({ moduleId }: TestSpecification): number => {
  const place = long.findIndex((name) => moduleId.endsWith(`test/${name}.test.ts`));
  return place === -1 ? long.length : place;
};

export default class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.sort((a, b) => rank(a) - rank(b));
  }
}

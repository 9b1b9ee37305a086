import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/load/**/*.test.ts"],
    globalSetup: ["test/support/global-setup.ts"],
    testTimeout: 900_000,
    hookTimeout: 120_000,
    maxWorkers: 1,
    fileParallelism: false,
  },
});

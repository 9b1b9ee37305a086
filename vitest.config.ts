import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["test/load/**"],
    globalSetup: ["test/support/global-setup.ts"],
    testTimeout: 180_000,
    hookTimeout: 120_000,
    maxWorkers: 3,
  },
});

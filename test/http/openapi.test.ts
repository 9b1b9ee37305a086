// The document is good for others: an independent linter finds no error in it, and a client made of it by
// an independent generator type-checks.

import { spawnSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createConfig, lintFromString } from "@redocly/openapi-core";
import openapiTS from "openapi-typescript";
import { expect, test } from "vitest";
import { createOpenApi } from "../../src/http/openapi.ts";

const root = join(import.meta.dirname, "..", "..");
const document = createOpenApi("1.0.0");

test("passes an independent linter without an error", async () => {
  const config = await createConfig({ extends: ["recommended"] });
  const problems = await lintFromString({
    source: JSON.stringify(document),
    absoluteRef: "/openapi.json",
    config,
  });
  const errors = problems.filter(({ severity }) => severity === "error");
  expect(errors.map(({ message, location }) => `${location[0]?.pointer}: ${message}`)).toEqual([]);
});

test("makes a client that type-checks, and that refuses what the service would refuse", async () => {
  const types = await openapiTS(structuredClone(document) as never);
  const folder = await mkdtemp(join(tmpdir(), "millrace-openapi-"));
  try {
    await writeFile(join(folder, "api.ts"), types);
    await writeFile(join(folder, "use.ts"), usage);
    await writeFile(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions }));
    const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
    const checked = spawnSync(process.execPath, [tsc, "-p", folder], { encoding: "utf8" });
    expect(checked.stdout).toBe("");
    expect(checked.status).toBe(0);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

const compilerOptions = {
  ...{ noEmit: true, strict: true, target: "es2022", lib: ["es2022", "dom"], types: [] },
  ...{ module: "esnext", moduleResolution: "bundler", allowImportingTsExtensions: true },
};

const usage = `
import type { operations, components } from "./api.ts";
type NewJob = components["schemas"]["NewJob"];
const job: NewJob = { type: "otp.send", payload: { userId: "u1" }, priority: "high" };
// @ts-expect-error the service does not take a state
const wrong: NewJob = { type: "otp.send", state: "completed" };
type Page = operations["listJobs"]["responses"][200]["content"]["application/json"];
export const ids = (page: Page): string[] => page.jobs.map(({ id }) => id);
type Leased = components["schemas"]["LeasedItem"];
export const end = (item: Leased): components["schemas"]["ItemEnd"] => ({ status: "DONE", token: item.token });
type Problem = operations["enqueueJob"]["responses"][409]["content"]["application/problem+json"];
export const code = (problem: Problem): string => problem.code;
export default [job, wrong];
`;

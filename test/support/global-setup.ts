// One throw-away PostgreSQL for the whole run. Each test file makes its own database on it.

import type { TestProject } from "vitest/node";
import { startServer } from "./postgres-server.ts";

declare module "vitest" {
  export interface ProvidedContext {
    postgresUrl: string;
  }
}

export default async function setup(project: TestProject) {
  const server = await startServer();
  project.provide("postgresUrl", server.url);
  return () => server.drop();
}

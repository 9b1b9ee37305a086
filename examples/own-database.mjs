// Where an example keeps its jobs: in an embedded database of its own, in a folder that goes when the
// example ends, so that none of it turns up in yours. With DATABASE_URL set they are kept there, and stay.
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Options for `Millrace.connect`. */
export function ownDatabase() {
  if (process.env.DATABASE_URL) {
    console.log("Data: in the database of DATABASE_URL, where it stays.");
    return {};
  }
  const folder = mkdtempSync(join(tmpdir(), "millrace-example-"));
  // Where root runs this, the database has an account of its own, which must be able to enter.
  chmodSync(folder, 0o755);
  console.log(`Data: in ${folder}, which is removed at the end.`);
  process.on("exit", () => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }));
  process.once("SIGINT", () => process.exit(130));
  return { dataDir: join(folder, "data") };
}

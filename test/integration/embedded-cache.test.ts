import {
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  rmdir,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type CopySource, copyBinaries } from "../../src/store/postgres/embedded-cache.ts";

const uid = process.geteuid?.() ?? 0;
let root: string;
let own: string;
let source: CopySource;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "millrace-cache-"));
  own = join(root, "tmp", `millrace-${uid}`);
  const native = join(root, "native");
  for (const folder of ["tmp", "native/bin", "native/lib"]) {
    await mkdir(join(root, folder), { recursive: true });
  }
  await writeFile(join(native, "bin/postgres"), "a program", { mode: 0o700 });
  await writeFile(join(native, "lib/libpq.so.5.18"), "a library", { mode: 0o600 });
  const links = [{ from: "lib/libpq.so.5", to: "lib/libpq.so.5.18" }];
  source = { version: "0.0.0-test", native, links };
  vi.stubEnv("TMPDIR", join(root, "tmp"));
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(root, { recursive: true, force: true });
});

const works = async () => true;

test("processes that copy at the same moment get one complete copy, links included", async () => {
  const copies = await Promise.all(Array.from({ length: 6 }, () => copyBinaries(source, works)));
  expect(new Set(copies).size).toBe(1);
  const copy = join(copies[0] ?? "", "..");
  expect(await readlink(join(copy, "lib/libpq.so.5"))).toBe("libpq.so.5.18");
  expect(await readFile(join(copy, "lib/libpq.so.5"), "utf8")).toBe("a library");
  expect(await readdir(own)).toHaveLength(1);
});

test("a copy of which a cleaner of temporary files took a part is made again", async () => {
  const binDir = await copyBinaries(source, works);
  await rm(join(binDir, "postgres"));
  expect(await copyBinaries(source, works)).toBe(binDir);
  expect(await readFile(join(binDir, "postgres"), "utf8")).toBe("a program");
  expect(await readdir(own)).toHaveLength(1);
});

test("a folder that somebody else prepared for us is not used", async () => {
  const trap = join(root, "trap");
  await mkdir(trap);
  await symlink(trap, own);
  const native = await rejectedReason();
  expect(native).toContain(`${own} is not a folder of ours`);
  expect(await readdir(trap)).toEqual([]);

  await rm(own);
  await mkdir(own);
  await chmod(own, 0o777);
  expect(await rejectedReason()).toContain(`${own} is not a folder of ours`);
});

/** The places after TMPDIR get copies too; "does not run" makes the search go on to its end. */
async function rejectedReason(): Promise<string> {
  const copies: string[] = [];
  const error: unknown = await copyBinaries(source, async (native) => {
    copies.push(native);
    return false;
  }).catch((reason: unknown) => reason);
  for (const copy of copies) {
    await rm(copy, { recursive: true });
    await rmdir(dirname(copy)).catch(() => undefined);
  }
  return String(error);
}
